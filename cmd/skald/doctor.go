package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"skald/cmd/skald/internal/synth"
	"skald/host"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/machine"
	"skald/host/music3"
)

// diagnosis is what doctor prints.
type diagnosis struct {
	Build    buildFacts        `json:"build"`
	Machine  machine.Machine   `json:"machine"`
	DiskFree int64             `json:"disk_free_bytes"` // of the current folder
	Devices  []diagnosedDevice `json:"devices"`
	Memory   []memoryNeed      `json:"published_model_memory"`
	Packing  string            `json:"packing"` // what --pack means here
	Advice   []string          `json:"advice"`
}

// diagnosedDevice is a device and whether --device auto takes it.
type diagnosedDevice struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Detail  string `json:"detail"`
	Threads int    `json:"threads,omitempty"`
	Chosen  bool   `json:"chosen"`
	Why     string `json:"why"`
}

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Looks at this machine and says which device would be used and why",
		Example: "  skald doctor\n  skald doctor --json",
		Args:    exactArgs(),
	}
	asJSON := cmd.Flags().Bool("json", false, "print as JSON")
	pack := addPackFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := diagnose(pack.bytes)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), d)
		}
		d.print(cmd.OutOrStdout())
		return nil
	}
	return cmd
}

func diagnose(pack int64) (diagnosis, error) {
	d := diagnosis{Build: readBuildFacts(), Machine: machine.Read(os.DirFS("/"))}
	d.DiskFree, _ = machine.DiskFree(".") // 0: not known here
	device, err := host.Open("auto", host.Options{})
	if err != nil {
		return d, fmt.Errorf("opening the device: %w", err)
	}
	info := device.Info()
	if err := device.Close(); err != nil {
		return d, fmt.Errorf("closing the device: %w", err)
	}
	d.Devices = append(d.Devices, diagnosedDevice{
		Kind: info.Kind, Name: info.Name, Detail: info.Detail, Threads: info.Threads,
		Chosen: true, Why: whyChosen(info, d.Machine),
	})
	full, err := synth.ShapeNamed("full")
	if err != nil {
		return d, err
	}
	published := music3.Shapes(full.Config, publishedTypes)
	if d.Memory, err = memoryNeeds(published, full.Config, pack); err != nil {
		return d, err
	}
	d.Packing = cpu.WhyPacked(pack)
	d.Advice = advice(d.Machine, d.Memory)
	return d, nil
}

func whyChosen(info compute.Info, m machine.Machine) string {
	switch {
	case info.Kind != "cpu":
		return "a GPU is preferred"
	case m.NVIDIA:
		return "there is an NVIDIA GPU, but this build has no CUDA device"
	}
	return "there is no other device"
}

// advice says what follows from the machine for the published model, and what limits it.
func advice(m machine.Machine, needs []memoryNeed) []string {
	out := []string{}
	if m.CgroupCPUs > 0 && m.CgroupCPUs < float64(m.Cores) {
		out = append(out, fmt.Sprintf("the container may use %.1f of %d cores: %s", m.CgroupCPUs, m.Cores,
			count(m.GOMAXPROCS, "thread")))
	}
	available := m.Available()
	if m.Total() == 0 {
		return append(out, "how much memory there is cannot be told here")
	}
	fits := false
	for _, n := range needs {
		verdict := "fits"
		if !n.Fits {
			verdict = "does not fit"
		}
		fits = fits || n.Fits
		out = append(out, fmt.Sprintf("MiniMax-Music3 in %s needs %s, %s available: %s", n.Precision, size(n.Total), size(available), verdict))
	}
	if !fits {
		out = append(out, "use the built-in model here, or a machine with more memory")
	}
	return out
}

func (d diagnosis) print(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	b, m := d.Build, d.Machine
	row("skald", "%s, %s %s, cgo %v, tags %s", b.Version, b.Go, b.Platform, b.CGO, orNone(b.Tags))
	row("CUDA", "architectures: %s", orNone(strings.Join(b.CUDAArchitectures, " ")))
	row("processor", "%s", orUnknown(m.CPU))
	row("features", "%s", orNone(strings.Join(m.Features, " ")))
	cores := fmt.Sprintf("%d, GOMAXPROCS %d", m.Cores, m.GOMAXPROCS)
	if m.CgroupCPUs > 0 {
		cores += fmt.Sprintf(", container limit %.1f", m.CgroupCPUs)
	}
	row("cores", "%s", cores)
	memory := fmt.Sprintf("%s, %s available", size(m.MemoryTotal), size(m.MemoryFree))
	if m.CgroupMemory > 0 {
		memory += fmt.Sprintf(", container limit %s, %s of it available", size(m.CgroupMemory), size(m.CgroupFree))
	}
	row("memory", "%s", memory)
	row("disk", "%s free here", size(d.DiskFree))
	for _, device := range d.Devices {
		chosen := ""
		if device.Chosen {
			chosen = "; chosen: " + device.Why
		}
		row("device", "%s: %s, %s, %s%s", device.Kind, device.Name, device.Detail, count(device.Threads, "thread"), chosen)
	}
	row("packing", "%s", d.Packing)
	fmt.Fprintln(w, "\nMiniMax-Music3, one song at a time:")
	printNeeds(w, d.Memory, func(memoryNeed) string { return "" })
	fmt.Fprintln(w)
	for _, a := range d.Advice {
		fmt.Fprintln(w, a)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
