package main

import (
	"io"
	"math"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bars is the meter for terminals: one bar for each stage, in the order in which the
// stages begin.
type bars struct {
	terminal io.Writer
	progress *mpb.Progress
	stages   map[string]*bar
	closed   sync.Once
}

type bar struct {
	*mpb.Bar
	mu   sync.Mutex
	note string
}

const barSteps = 1000

func newBars(terminal io.Writer) *bars {
	return &bars{
		terminal: terminal,
		progress: mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(40)),
		stages:   map[string]*bar{},
	}
}

func (b *bars) show(stage string, fraction float64, note string) {
	s := b.stages[stage]
	if s == nil {
		s = &bar{}
		s.Bar = b.progress.AddBar(barSteps,
			mpb.PrependDecorators(decor.Name(stage, decor.WC{W: 9, C: decor.DindentRight})),
			mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Any(func(decor.Statistics) string {
				s.mu.Lock()
				defer s.mu.Unlock()
				return "  " + s.note
			})))
		b.stages[stage] = s
	}
	s.mu.Lock()
	s.note = note
	s.mu.Unlock()
	s.SetCurrent(int64(math.Round(barSteps * min(max(fraction, 0), 1))))
}

// finish leaves the bar where it is: the model may end a song before its length.
func (b *bars) finish(stage string) {
	if s := b.stages[stage]; s != nil {
		s.SetTotal(-1, true)
	}
}

func (b *bars) log() io.Writer { return b }

// Write prints lines above the bars while there are any.
func (b *bars) Write(p []byte) (int, error) {
	n, err := b.progress.Write(p)
	if err != nil {
		return b.terminal.Write(p)
	}
	return n, nil
}

func (b *bars) close() {
	b.closed.Do(func() {
		for _, s := range b.stages {
			s.Abort(false) // no effect on a complete one
		}
		b.progress.Wait()
	})
}
