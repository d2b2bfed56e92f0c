package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skald/cmd/skald/internal/synth"
	"skald/host/machine"
)

func newSynth() *cobra.Command {
	var names, about []string
	for _, s := range synth.Shapes() {
		bytes := synth.Options{Shape: s, DTypes: synth.Published}.Bytes()
		names = append(names, s.Name)
		about = append(about, fmt.Sprintf("  %-8s %9s  %s", s.Name, size(bytes), s.About))
	}
	cmd := &cobra.Command{
		Use:   "synth DIR",
		Short: "Writes a checkpoint of random weights",
		Long: `Writes a checkpoint of random weights in the diffusers layout, to test and to
measure without the real ones. Songs made with it are noise. The shapes:

` + strings.Join(about, "\n") + `

The same shape, seed and types give the same bytes on every machine. DIR must not
exist or be empty, and appears only when it is complete.`,
		Example:           "  skald synth --shape tiny /tmp/tiny\n  skald synth --shape full --dtype bf16 /data/full",
		Args:              exactArgs("DIR"),
		ValidArgsFunction: completeFolders,
	}
	shape := choiceFlag(cmd, "shape", "tiny", "size of the model", names...)
	dtype := choiceFlag(cmd, "dtype", string(synth.Published),
		"types of the weights: published (language side BF16, the rest F32), bf16 or f32",
		string(synth.Published), string(synth.BF16), string(synth.F32))
	seed := cmd.Flags().Uint64("seed", 0, "`number` that makes the weights others")
	layers := cmd.Flags().Int("layers", 0, "layers of each stack, at most as many as the shape has, to compare whole songs at true widths; 0: all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := synth.ShapeNamed(shape.value)
		if err != nil {
			return usagef("--shape: %w", err)
		}
		if *layers != 0 {
			if s, err = s.WithLayers(*layers); err != nil {
				return usagef("--layers: %w", err)
			}
		}
		show := newMeter(cmd.ErrOrStderr())
		defer show.close()
		o := synth.Options{Shape: s, Seed: *seed, DTypes: synth.DTypes(dtype.value), Progress: func(p synth.Progress) {
			show.show("weights", float64(p.Written)/float64(p.Total), fmt.Sprintf("%s of %s, %s", size(p.Written), size(p.Total), p.File))
		}}
		if err := checkDisk(args[0], o.Bytes()); err != nil {
			return err
		}
		if err := synth.Write(cmd.Context(), args[0], o); err != nil {
			return fmt.Errorf("writing %s: %w (nothing was left behind)", args[0], err)
		}
		show.close()
		fmt.Fprintf(cmd.OutOrStdout(), "%s holds random weights of shape %s, seed %d: %s\n", args[0], s.Name, *seed, size(o.Bytes()))
		return nil
	}
	return cmd
}

// checkDisk refuses a checkpoint for which there is no room. Settings and headers take
// less than the margin.
func checkDisk(dir string, weights int64) error {
	const margin = 16 << 20
	free, err := machine.DiskFree(dir)
	if err != nil {
		return nil // not known here; writing will tell
	}
	if need := weights + margin; free < need {
		return fmt.Errorf("%s needs %s (%d bytes), and the disk has %s (%d bytes) free", dir, size(need), need, size(free), free)
	}
	return nil
}
