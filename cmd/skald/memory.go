package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skald/host"
	"skald/host/checkpoint"
	"skald/host/engine"
	"skald/host/music3"
)

// memoryNeed is what a model takes in one precision, in bytes.
type memoryNeed struct {
	Precision music3.Precision `json:"precision"`
	Songs     int              `json:"songs"`
	Seconds   int              `json:"longest_song_seconds"`
	InPlace   int64            `json:"weights_in_place_bytes"` // mapped
	Private   int64            `json:"weights_own_bytes"`
	Packed    int64            `json:"packed_bytes"` // of these, copies that --pack decides about
	KVCache   int64            `json:"kv_cache_bytes"`
	Held      int64            `json:"songs_bytes"` // of songs until they are rendered
	Scratch   int64            `json:"working_bytes"`
	Total     int64            `json:"total_bytes"`
	Fits      bool             `json:"fits"`
}

// memoryNeeds computes the need in every precision for one song, by the engine's own
// plan for this machine.
func memoryNeeds(src music3.Source, c checkpoint.Config, pack int64) (needs []memoryNeed, err error) {
	plan := func(pack int64, p music3.Precision) (engine.Memory, error) {
		dev, err := host.Open("cpu", host.Options{PackBytes: pack})
		if err != nil {
			return engine.Memory{}, err
		}
		defer dev.Close()
		return engine.PlanMemory(dev, src, c, p, 1)
	}
	for _, p := range []music3.Precision{music3.FP32, music3.Mixed, music3.BF16} {
		m, err := plan(pack, p)
		if err != nil {
			return nil, err
		}
		bare, err := plan(-1, p)
		if err != nil {
			return nil, err
		}
		n := m.Need
		needs = append(needs, memoryNeed{
			Precision: p, Songs: m.Songs, Seconds: m.Seconds, InPlace: n.InPlace, Private: n.Private, Packed: n.Private - bare.Need.Private,
			KVCache: n.KVCache, Held: n.Songs, Scratch: n.Scratch, Total: n.Total(), Fits: m.Fits(),
		})
	}
	return needs, nil
}

// publishedTypes are those in which MiniMax-Music3's weights are stored.
func publishedTypes(component string) checkpoint.DType {
	if component == "language_model" || component == "rvq_depth_decoder" {
		return checkpoint.BF16
	}
	return checkpoint.F32
}

func printNeeds(w io.Writer, needs []memoryNeed, note func(memoryNeed) string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "precision\tmemory\tweights mapped\town\tof that packed\tKV cache\tsong\tof at most\tworking\t")
	for _, n := range needs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d s\t%s\t%s\n", n.Precision, size(n.Total), size(n.InPlace), size(n.Private),
			size(n.Packed), size(n.KVCache), size(n.Held), n.Seconds, size(n.Scratch), note(n))
	}
	t.Flush()
}

// packFlag is --pack: which matrices get a packed copy.
type packFlag struct {
	text  string
	bytes int64 // as cpu.Options has it
}

func addPackFlag(cmd *cobra.Command) *packFlag {
	f := &packFlag{text: "auto"}
	cmd.Flags().Var(f, "pack", packUsage)
	complete(cmd, "pack", cobra.FixedCompletions([]string{"auto", "none", "all"}, cobra.ShellCompDirectiveNoFileComp))
	return f
}

const packUsage = "matrices that get a packed copy in memory of their own: auto (what speeds this processor up, as far as there is memory), none, all, or a `size` such as 64MB: those whose copy is at most so large"

func (f *packFlag) String() string { return f.text }
func (f *packFlag) Type() string   { return "auto|none|all|size" }

// Set is called by pflag, which puts the flag's name before the error.
func (f *packFlag) Set(s string) error {
	n, ok := map[string]int64{"auto": 0, "none": -1, "all": math.MaxInt64}[s]
	if !ok {
		var err error
		if n, err = parseSize(s); err != nil {
			return fmt.Errorf("want auto, none, all or a size such as 64MB: %w", err)
		}
		if n == 0 {
			n = -1
		}
	}
	f.text, f.bytes = s, n
	return nil
}

// parseSize reads a number of bytes, with or without a unit.
func parseSize(s string) (int64, error) {
	units := []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if n := x * u.bytes; err == nil && n >= 0 && n <= 1<<60 {
			return int64(n), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not a size", s)
}
