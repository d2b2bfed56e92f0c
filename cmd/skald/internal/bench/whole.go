package bench

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"time"

	"skald/host"
	"skald/host/checkpoint"
	"skald/host/engine"
	"skald/host/music3"
)

// WholeNames are the measurements of a whole engine, in order: how long loading takes,
// and whether its memory grows with the songs it makes.
func WholeNames() []string { return []string{"load", "songs"} }

// Load measures the loading of the checkpoint in dir, its files first outside and then
// inside the system's cache, and writes a row for each.
func Load(ctx context.Context, dir string, eo engine.Options, o Options, out io.Writer) error {
	eo.ModelDir, eo.Logger = dir, slog.New(slog.DiscardHandler)
	read, err := bytesRead(eo)
	if err != nil {
		return err
	}
	open := func() error {
		e, err := engine.Open(ctx, eo)
		if err != nil {
			return err
		}
		return e.Close()
	}
	for _, work := range []string{"cold", "warm"} {
		if work == "cold" {
			if err := eachWeightFile(dir, evict); err != nil {
				return fmt.Errorf("putting files out of the system's cache: %w", err)
			}
		}
		t := timing{}
		t.otherCores = others(func() {
			start := time.Now()
			err = open()
			t.seconds = append(t.seconds, time.Since(start).Seconds())
		})
		if err != nil {
			return err
		}
		t.disturbed = disturbs(t.otherCores, o.Threads)
		r := Row{Peer: "skald", Stage: "load", Work: work, DType: eo.Precision, Threads: o.Threads, LayersTimed: 1, LayersTotal: 1, Level: o.Level, Bytes: read}
		r.fill(t, 0, float64(read))
		if err := r.print(out); err != nil {
			return err
		}
	}
	return nil
}

// bytesRead is how many bytes of a checkpoint loading reads.
func bytesRead(eo engine.Options) (int64, error) {
	c, err := checkpoint.Open(eo.ModelDir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	dev, err := host.Open(eo.Device, host.Options{Threads: eo.Threads, PackBytes: eo.PackBytes})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	m, err := engine.PlanMemory(dev, c, c.Config, music3.Precision(eo.Precision), 1)
	return m.ReadBytes(), err
}

// eachWeightFile visits the files of weights below dir.
func eachWeightFile(dir string, visit func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".safetensors" {
			return err
		}
		return visit(path)
	})
}

// Songs makes so many short songs, one after another, and writes the memory that the
// process has of the machine after the third and after the last.
func Songs(ctx context.Context, eo engine.Options, count int, o Options, out io.Writer) error {
	eo.Logger = slog.New(slog.DiscardHandler)
	e, err := engine.Open(ctx, eo)
	if err != nil {
		return err
	}
	defer e.Close()
	begin := time.Now()
	for n := 1; n <= count; n++ {
		r := e.Defaults()
		r.Lyrics, r.Instructions, r.Seed, r.Steps = "[verse]\nla la la", "calm piano", uint64(n), 2
		r.MaxFrames = min(250+n%7, e.Info().MaxFrames) // several windows, of several lengths
		if _, err := e.Sing(ctx, r); err != nil {
			return err
		}
		if n != 3 && n != count {
			continue
		}
		debug.FreeOSMemory() // what only waits to be collected or given back is no growth
		resident, err := residentBytes()
		if err != nil {
			return err
		}
		took := digits(time.Since(begin).Seconds(), 3)
		row := Row{Peer: "skald", Stage: "songs", Work: fmt.Sprintf("song=%d", n), DType: eo.Precision, Threads: o.Threads, LayersTimed: 1, LayersTotal: 1,
			SecondsMin: took, SecondsMedian: took, ScaledSeconds: took, ScaledMedian: took, Runs: n, Level: o.Level, Bytes: resident}
		if err := row.print(out); err != nil {
			return err
		}
	}
	return nil
}
