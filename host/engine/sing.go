package engine

import (
	"context"
	"errors"
	"math"

	"skald/host/audio"
)

// Sing makes one song. It waits for a place. When ctx ends it stops within one frame,
// one flow step or one vocoder block and returns the context's cause. Errors:
// *RequestError (several joined), *NumericError, *MemoryError, the Sink's error, context
// errors, ErrClosed.
func (e *Engine) Sing(ctx context.Context, r Request) (*Song, error) {
	s, err := e.newSinging(ctx, r)
	if err != nil {
		return nil, err
	}
	defer s.cancel(nil)
	defer context.AfterFunc(e.closing, func() { s.cancel(ErrClosed) })()
	if err := e.enqueue(s); err != nil {
		return nil, err
	}
	left := s.ctx.Done()
	for {
		select {
		case <-s.changed:
		case <-left:
			left = nil
			e.leave(s)
		}
		pieces, over := e.take(s)
		for _, p := range pieces {
			if err := s.deliver(p); err != nil {
				s.cancel(err)
			}
		}
		if over {
			break
		}
	}
	if err := context.Cause(s.ctx); err != nil {
		return nil, err
	}
	return s.finish()
}

// piece is what a window adds to the song, left and right.
type piece [2][]float32

// deliver hands samples to the caller and measures them.
func (s *singing) deliver(p piece) error {
	s.measure.add(p)
	if s.r.Sink != nil {
		return s.r.Sink(p)
	}
	for c := range p {
		s.song.Samples[c] = append(s.song.Samples[c], p[c]...)
	}
	return nil
}

// finish completes the song's description.
func (s *singing) finish() (*Song, error) {
	song := &s.song
	if err := s.measure.err(); err != nil {
		return nil, &NumericError{Stage: StageVocoder, What: err.Error()}
	}
	if s.trace != nil && s.r.Sink == nil {
		if err := s.trace.waveform(song.Samples); err != nil {
			return nil, err
		}
	}
	song.SampleRate, song.Seed = s.e.info.SampleRate, s.r.Seed
	song.PromptTokens = len(s.prompt.IDs)
	song.RMS, song.Peak = s.measure.rms(), s.measure.peak
	for _, stage := range []Stage{StageQueue, StagePrompt, StageAR, StageFlow, StageVocoder} {
		song.Timings = append(song.Timings, Timing{stage, s.spent[stage]})
	}
	return song, nil
}

// measure sums up a song's samples piece by piece.
type measure struct {
	samples       int
	squares, peak float64
	first         [2]float32
	changing      bool // some channel has two different values
	sounding      bool // some sample is not zero
}

func (m *measure) add(p piece) {
	stats := audio.Measure(p[0], p[1])
	if m.samples == 0 && stats.Samples > 0 {
		m.first = [2]float32{p[0][0], p[1][0]}
	}
	m.samples += stats.Samples
	m.squares += stats.RMS * stats.RMS * float64(stats.Samples)
	m.peak = max(m.peak, stats.Peak)
	m.sounding = m.sounding || !stats.Silent
	m.changing = m.changing || !stats.Constant || stats.Samples > 0 && (p[0][0] != m.first[0] || p[1][0] != m.first[1])
}

func (m *measure) rms() float64 { return math.Sqrt(m.squares / float64(max(m.samples, 1))) }

// err is nil for a song that may be music.
func (m *measure) err() error {
	switch {
	case m.samples == 0:
		return errors.New("the song has no samples")
	case !m.sounding:
		return errors.New("the song is silent: every sample is zero")
	case !m.changing:
		return errors.New("the song is constant: every sample has the same value")
	}
	return nil
}
