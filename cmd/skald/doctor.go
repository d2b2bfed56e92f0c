package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald/cmd/skald/internal/synth"
	"skald/host"
	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/engine"
	"skald/host/machine"
	"skald/host/music3"
)

// diagnosis is what doctor prints.
type diagnosis struct {
	Build    buildFacts        `json:"build"`
	Machine  machine.Machine   `json:"machine"`
	DiskFree int64             `json:"disk_free_bytes"` // of the current folder
	Devices  []diagnosedDevice `json:"devices"`
	Levels   []string          `json:"levels"` // of the processor's kernels, of which SKALD_CPU chooses
	Memory   []memoryNeed      `json:"published_model_memory"`
	Packing  string            `json:"packing"` // what --pack means here
	Advice   []string          `json:"advice"`
}

// diagnosedDevice is a device and whether --device auto takes it.
type diagnosedDevice struct {
	Device  string `json:"device"` // as --device takes it
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Detail  string `json:"detail"`
	Threads int    `json:"threads,omitempty"`
	Memory  int64  `json:"memory_bytes,omitempty"`
	Usable  bool   `json:"usable"`
	Chosen  bool   `json:"chosen"`
	Why     string `json:"why"`

	Sensors *compute.Sensors `json:"sensors,omitempty"`
	Unread  string           `json:"sensors_unread,omitempty"` // why there are none

	Precision string `json:"auto_precision"` // what --precision auto is for the published model; "" for none
	Reason    string `json:"auto_precision_reason"`
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
	d.Levels = cpu.Levels()
	d.DiskFree, _ = machine.DiskFree(".") // 0: not known here
	full, err := synth.ShapeNamed("full")
	if err != nil {
		return d, err
	}
	published := music3.Shapes(full.Config, publishedTypes)
	if d.Memory, err = memoryNeeds(published, full.Config, pack); err != nil {
		return d, err
	}
	d.Packing = cpu.WhyPacked(pack)
	found, err := host.Find()
	if err != nil {
		return d, fmt.Errorf("looking for devices: %w", err)
	}
	for _, f := range found {
		x := diagnosedDevice{
			Device: f.Device, Kind: f.Info.Kind, Name: f.Info.Name, Detail: f.Info.Detail, Threads: f.Info.Threads,
			Memory: f.Memory.Total, Usable: f.Usable, Chosen: f.Chosen, Why: f.Why, Sensors: f.Sensors, Unread: f.Unread,
		}
		if x.Precision, x.Reason, err = autoPrecision(x, published, full.Config); err != nil {
			return d, err
		}
		d.Devices = append(d.Devices, x)
	}
	d.Advice = append(portable(d.Devices, d.Levels), advice(d.Machine, d.Memory)...)
	return d, nil
}

// autoPrecision tells what --precision auto is on a device for the published model.
// Loading decides anew, by the checkpoint that it loads and what is free then.
func autoPrecision(d diagnosedDevice, src music3.Source, c checkpoint.Config) (precision, reason string, err error) {
	switch {
	case !d.Usable:
		return "", "the device cannot be used", nil
	case d.Kind == "cpu":
		return string(music3.Mixed), "a processor computes from the mapped weights", nil
	}
	device, err := host.Open(d.Device, host.Options{})
	if err != nil {
		return "", err.Error(), nil
	}
	defer device.Close()
	least := engine.Memory{}
	for _, p := range []music3.Precision{music3.Mixed, music3.BF16} {
		if least, err = engine.PlanMemory(device, src, c, p, 1); err != nil {
			return "", "", err
		}
		if least.Fits() {
			return string(p), fmt.Sprintf("one song needs %s of %s free", size(least.Need.Total()), size(least.Have.Free)), nil
		}
	}
	return "", fmt.Sprintf("bf16 needs %s, %s are free", size(least.Need.Total()), size(least.Have.Free)), nil
}

// portable says that the processor runs without vector kernels, and why.
func portable(devices []diagnosedDevice, levels []string) []string {
	at := func(d diagnosedDevice) bool { return d.Kind == "cpu" && strings.Contains(d.Detail, "level go ") }
	switch {
	case !slices.ContainsFunc(devices, at):
		return nil
	case len(levels) > 1:
		return []string{"the portable code runs, because SKALD_CPU asks for it: it is many times slower than this machine's vector kernels"}
	}
	return []string{"the portable code runs, because this processor or this build has none of the vector instructions that the kernels are written for: it is many times slower than they are"}
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
		out = append(out, fmt.Sprintf("MiniMax-Music3 in %s needs %s for a song of %d s, %s available: %s", n.Precision, size(n.Total), n.Seconds, size(available), verdict))
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
		device.print(row)
	}
	row("levels", "%s; SKALD_CPU chooses, otherwise the fastest is taken", strings.Join(d.Levels, " "))
	row("packing", "%s", d.Packing)
	fmt.Fprintln(w, "\nMiniMax-Music3, one song at a time:")
	printNeeds(w, d.Memory, func(memoryNeed) string { return "" })
	fmt.Fprintln(w)
	for _, a := range d.Advice {
		fmt.Fprintln(w, a)
	}
}

func (d diagnosedDevice) print(row func(name, format string, args ...any)) {
	is := "not chosen"
	if d.Chosen {
		is = "chosen"
	}
	hardware := d.Detail
	if d.Threads > 0 {
		hardware += ", " + count(d.Threads, "thread")
	}
	row("device", "%s: %s, %s; %s: %s", d.Device, d.Name, hardware, is, d.Why)
	row("", "precision auto: %s: %s", orNone(d.Precision), d.Reason)
	if d.Unread != "" {
		row("", "no sensors: %s", d.Unread)
	}
	if s := d.Sensors; s != nil {
		row("", "driver %s%s%s%s%s%s%s", orUnknown(s.Driver), optional(", memory used %s", s.MemoryUsed, size),
			optional(", %d %% busy", s.Utilisation, nil), optional(", %d °C", s.Temperature, nil), optional(", %.0f W", s.Power, nil),
			optional(", %d MHz", s.Clock, nil), optional(", %d uncorrected memory errors", s.ECCErrors, nil))
	}
}

// optional formats what v points to, or nothing.
func optional[T any](format string, v *T, convert func(T) string) string {
	switch {
	case v == nil:
		return ""
	case convert != nil:
		return fmt.Sprintf(format, convert(*v))
	}
	return fmt.Sprintf(format, *v)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
