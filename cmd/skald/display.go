package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"skald/host/engine"
)

// meter shows how far the stages of some work are.
type meter interface {
	// show says that a stage is done to a fraction; note is a few words more.
	show(stage string, fraction float64, note string)
	// finish says that a stage is over, whatever fraction was shown.
	finish(stage string)
	// log is where lines may be written meanwhile.
	log() io.Writer
	close()
}

// newMeter draws bars on a terminal and prints a line now and then elsewhere.
func newMeter(w io.Writer) meter {
	if f, ok := w.(*os.File); ok {
		// A terminal without a size, as some recorders give, shows no bars.
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return newBars(w)
		}
	}
	return &lines{w: w, every: 5 * time.Second}
}

// display shows an engine's progress on a meter.
type display struct{ meter }

func newDisplay(w io.Writer) *display { return &display{newMeter(w)} }

func (d *display) load(p engine.LoadProgress) {
	note := size(p.Total)
	if !p.Done {
		note = fmt.Sprintf("%s of %s, %s/s, %s", size(p.Bytes), size(p.Total), size(int64(p.BytesPerSecond)), p.Component)
	}
	d.show(string(engine.StageLoad), float64(p.Bytes)/float64(max(p.Total, 1)), note)
}

func (d *display) song(p engine.Progress) {
	var note string
	switch p.Stage {
	case engine.StageAR:
		note = fmt.Sprintf("frame %d of at most %d", p.Frames, p.MaxFrames)
	case engine.StageFlow, engine.StageVocoder:
		note = fmt.Sprintf("window %d", p.Window+1)
		if p.Windows > 0 { // known once all frames are sung, maybe fewer than asked for
			note += fmt.Sprintf(" of %d", p.Windows)
			d.finish(string(engine.StageAR))
		}
	default:
		return // over at once
	}
	if p.ETA > 0 {
		note += ", about " + p.ETA.Round(time.Second).String() + " left"
	}
	d.show(string(p.Stage), p.Fraction, note)
}

// size formats bytes in decimal units.
func size(bytes int64) string {
	switch x := float64(bytes); {
	case x < 1e3:
		return fmt.Sprintf("%d B", bytes)
	case x < 1e6:
		return fmt.Sprintf("%.1f kB", x/1e3)
	case x < 1e9:
		return fmt.Sprintf("%.1f MB", x/1e6)
	default:
		return fmt.Sprintf("%.2f GB", x/1e9)
	}
}

// lines is the meter for logs and pipes: a line for every stage that ends, and one
// every few seconds in between.
type lines struct {
	w     io.Writer
	every time.Duration
	last  time.Time
	done  map[string]bool
}

func (l *lines) show(stage string, fraction float64, note string) {
	now := time.Now()
	if l.last.IsZero() {
		l.last = now // the first line comes after a while too
	}
	if fraction >= 1 {
		l.finish(stage)
		return
	}
	if now.Sub(l.last) >= l.every {
		l.last = now
		fmt.Fprintf(l.w, "%-8s %3.0f%%  %s\n", stage, 100*fraction, note)
	}
}

func (l *lines) finish(stage string) {
	if l.done[stage] {
		return
	}
	if l.done == nil {
		l.done = map[string]bool{}
	}
	l.done[stage] = true
	l.last = time.Now()
	fmt.Fprintf(l.w, "%-8s done\n", stage)
}

func (l *lines) log() io.Writer { return l.w }
func (l *lines) close()         {}
