package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald/cmd/skald/internal/bench"
	"skald/cmd/skald/internal/synth"
	"skald/host"
	"skald/host/engine"
	"skald/host/music3"
)

func newBench() *cobra.Command {
	var (
		o          = bench.Options{}
		device     string
		shape      string
		dtypes     []string
		compare    string
		noRoofline bool
		model      string
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measures the stages of the model on this machine",
		Long: `Measures the stages of the model at their real widths, with made-up weights and
few layers, and prints one JSON row for each: the timed seconds, and those scaled to
all layers. The first rows are the machine's own rates, measured in the same run;
of_memory and of_arithmetic say what share of them a stage reaches.

A row with "disturbed": true was measured while other processes took the cores it
needs: believe no such row. With --compare, ratios to another program's rows of the
same form follow on standard error; above 1, skald is faster.`,
		Example: `  skald bench > skald.jsonl
  skald bench --stages lm_decode,dit --dtypes bf16 --latents 689
  skald bench --compare torch.jsonl > skald.jsonl`,
		Args: exactArgs(),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Stages, "stages", bench.StageNames(), "stages to measure; also load (needs --model) and songs, of a whole engine")
	f.StringVar(&model, "model", "", "`folder` of the checkpoint of load and songs; without it songs takes the built-in model")
	complete(cmd, "model", completeFolders)
	pack := addPackFlag(cmd)
	f.StringSliceVar(&dtypes, "dtypes", []string{"bf16", "fp32"}, "types of the activations: bf16, fp32")
	f.IntVar(&o.Layers, "layers", 4, "layers to time; the rest is extrapolated")
	f.IntSliceVar(&o.Latents, "latents", []int{86, 689}, "latents of a window")
	f.IntSliceVar(&o.Rows, "rows", []int{2, 4, 8, 16, 32}, "rows of a decode step; a song has two")
	f.IntVar(&o.Runs, "runs", 7, "undisturbed runs of each stage")
	f.DurationVar(&o.Budget, "budget", time.Minute, "longest time to spend on a row")
	f.IntVar(&o.Threads, "threads", 0, "processor cores to use; 0: all that the machine or container offers")
	f.StringVar(&device, "device", "auto", "auto, cpu, cuda or cuda:N")
	f.StringVar(&shape, "shape", "full", "widths of the model: tiny, aligned, medium or full")
	f.StringVar(&compare, "compare", "", "`file` of another program's rows to print ratios to")
	f.BoolVar(&noRoofline, "no-roofline", false, "do not measure the machine's own rates")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := synth.ShapeNamed(shape)
		if err != nil {
			return usagef("--shape: %v", err)
		}
		o.Config = s.Config
		if err := checkBench(&o, dtypes); err != nil {
			return err
		}
		if slices.Contains(o.Stages, "load") && model == "" {
			return usagef("--stages load needs --model: the folder of a checkpoint, such as skald synth writes")
		}
		var peers []bench.Row
		if compare != "" {
			if peers, err = readRows(compare); err != nil {
				return err
			}
		}
		dev, err := host.Open(device, host.Options{Threads: o.Threads, PackBytes: pack.bytes})
		if err != nil {
			return err
		}
		defer dev.Close()
		o.Threads, o.Level = dev.Info().Threads, dev.Info().Detail
		var rows bytes.Buffer
		out := io.MultiWriter(cmd.OutOrStdout(), &rows)
		if !noRoofline {
			if o.Rates, err = bench.Roofline(cmd.Context(), o, out); err != nil {
				return err
			}
		}
		if err := bench.Run(cmd.Context(), dev, o, out); err != nil {
			return err
		}
		for _, p := range o.Precision {
			whole := engine.Options{ModelDir: model, Device: device, Threads: o.Threads, Precision: string(p), Songs: 1, PackBytes: pack.bytes}
			if slices.Contains(o.Stages, "load") {
				if err := bench.Load(cmd.Context(), model, whole, o, out); err != nil {
					return fmt.Errorf("load: %w", err)
				}
			}
			if slices.Contains(o.Stages, "songs") {
				if err := bench.Songs(cmd.Context(), whole, 20, o, out); err != nil {
					return fmt.Errorf("songs: %w", err)
				}
			}
		}
		if peers == nil {
			return nil
		}
		ours, err := bench.ReadRows(&rows)
		if err != nil {
			return err
		}
		n, err := bench.Compare(cmd.ErrOrStderr(), ours, peers)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s has no row with the stage, work, dtype and threads of one measured here", compare)
		}
		return err
	}
	return cmd
}

// checkBench refuses what cannot be measured.
func checkBench(o *bench.Options, dtypes []string) error {
	for _, name := range o.Stages {
		if all := append(bench.StageNames(), bench.WholeNames()...); !slices.Contains(all, name) {
			return usagef("--stages: there is no stage %q; the stages are %s", name, strings.Join(all, ", "))
		}
	}
	for _, d := range dtypes {
		switch d {
		case "bf16":
			o.Precision = append(o.Precision, music3.BF16)
		case "fp32":
			o.Precision = append(o.Precision, music3.FP32)
		default:
			return usagef("--dtypes: %q is neither bf16 nor fp32", d)
		}
	}
	layers := min(o.Config.LanguageModel.Layers, o.Config.Transformer.Layers)
	if o.Layers < 1 || o.Layers > layers {
		return usagef("--layers %d: want 1 to %d", o.Layers, layers)
	}
	for _, n := range o.Latents {
		if n < 1 || n > 2000 {
			return usagef("--latents %d: want 1 to 2000", n)
		}
	}
	for _, n := range o.Rows {
		if n < 1 || n > 256 {
			return usagef("--rows %d: want 1 to 256", n)
		}
	}
	if o.Runs < 1 || o.Runs > 1000 {
		return usagef("--runs %d: want 1 to 1000", o.Runs)
	}
	if o.Threads < 0 || o.Threads > 8*runtime.NumCPU() {
		return usagef("--threads %d: want 1 to %d, or 0 for all cores", o.Threads, 8*runtime.NumCPU())
	}
	return nil
}

func readRows(path string) ([]bench.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := bench.ReadRows(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
