package main

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"
)

// reloadInterval is how often files are looked at.
const reloadInterval = 5 * time.Second

// source is files whose contents can be taken in again while the server runs.
type source struct {
	name  string // for the log
	paths []string
	load  func() error
}

// reload loads the sources again after a signal, and each whose files have changed,
// until ctx ends. What cannot be loaded is logged, and what was loaded before stays in
// use.
func reload(ctx context.Context, log *slog.Logger, signals <-chan os.Signal, every time.Duration, sources ...source) {
	seen := make([][]stamp, len(sources))
	for i, s := range sources {
		seen[i] = stamps(s.paths)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-signals:
			asked = true
		case <-tick.C:
		}
		for i, s := range sources {
			now := stamps(s.paths)
			if !asked && slices.Equal(now, seen[i]) {
				continue
			}
			seen[i] = now
			if err := s.load(); err != nil {
				log.Error(s.name+" not reloaded; the old ones stay in use", "error", err)
				continue
			}
			log.Info(s.name + " reloaded")
		}
	}
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func stamps(paths []string) []stamp {
	all := make([]stamp, len(paths))
	for i, p := range paths {
		if info, err := os.Stat(p); err == nil { // a file that is gone is a change
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}
