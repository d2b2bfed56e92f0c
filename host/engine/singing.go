package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"skald/host/compute"
	"skald/host/music3"
	"skald/host/music3/prompt"
	"skald/host/rng"
)

// singing is one song on its way. The frame loop's goroutine owns it while inFrames, the
// renderer's while inWindow; what both touch is guarded by the engine's mutex.
type singing struct {
	e      *Engine
	r      Request
	ctx    context.Context // ends with the caller's, with a failure, and with the engine
	cancel context.CancelCauseFunc
	prompt prompt.Prompt
	start  time.Time
	trace  *tracer
	torch  *rng.Torch
	voice  *music3.Voice
	track  *music3.Track
	ready  bool // the prompts are computed

	song    Song    // filled in as facts become known
	measure measure // of the delivered samples

	reporting sync.Mutex // one Progress call at a time

	// Guarded by Engine.mu.
	frames             int  // that can be rendered
	sung               bool // no frame will follow
	inFrames, inWindow bool
	over               bool
	window             int // next to render
	pieces             []piece
	spent              map[Stage]time.Duration
	queued             time.Time
	changed            chan struct{} // holds a token after a change that Sing should see
}

// newSinging checks a request and prepares its song.
func (e *Engine) newSinging(ctx context.Context, r Request) (*singing, error) {
	s := &singing{e: e, r: r, start: time.Now(), spent: map[Stage]time.Duration{}, changed: make(chan struct{}, 1)}
	var err error
	if s.prompt, s.song.Warnings, err = e.prepare(&s.r); err != nil {
		return nil, err
	}
	s.voice = &music3.Voice{MaxFrames: s.r.MaxFrames, Seed: s.r.Seed}
	if s.r.RNG == Torch {
		s.torch = rng.NewTorch(s.r.Seed)
		s.voice.Torch = s.torch
	}
	if s.r.Replay != nil {
		s.voice.Forced = s.r.Replay.Codes
	}
	if s.r.Trace != nil {
		s.trace = newTracer(s)
		s.voice.Observer = s.trace.observer()
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.spent[StagePrompt] = time.Since(s.start)
	return s, nil
}

// took adds to a stage's time.
func (s *singing) took(stage Stage, since time.Time) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.spent[stage] += time.Since(since)
}

// signal wakes the song's Sing. The mutex is held.
func (s *singing) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// enqueue puts a song in line.
func (e *Engine) enqueue(s *singing) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Err() != nil {
		return ErrClosed
	}
	s.queued = time.Now()
	e.waiting, e.all = append(e.waiting, s), append(e.all, s)
	e.framesGo.Signal()
	return nil
}

// take returns the samples that became final since the last call, and whether the song
// is over.
func (e *Engine) take(s *singing) (pieces []piece, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pieces, s.pieces = s.pieces, nil
	return pieces, s.over
}

// leave ends a song whose context ended: at once when nobody works on it.
func (e *Engine) leave(s *singing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = slices.DeleteFunc(e.waiting, func(x *singing) bool { return x == s })
	e.retire(s)
}

// retire ends a song that nobody works on any more, and frees what it holds. The mutex
// is held.
func (e *Engine) retire(s *singing) {
	if s.over || s.inFrames || s.inWindow {
		return
	}
	s.over = true
	e.all = slices.DeleteFunc(e.all, func(x *singing) bool { return x == s })
	s.voice.Release()
	if s.track != nil {
		s.track.Release()
	}
	s.signal()
	if e.closing.Err() != nil {
		e.windowGo.Broadcast() // Close waits for the last song
	}
}

// noise is the normal draw of a window: recorded, torch's, or Philox's.
func (s *singing) noise(window int, dst []float32) {
	if r := s.r.Replay; r != nil && window < len(r.Noise) && r.Noise[window] != nil {
		copy(dst, r.Noise[window])
		return
	}
	switch {
	case s.torch == nil:
		rng.Normals(s.r.Seed, uint32(window), dst)
	case s.e.model.Precision.Acoustic() == compute.BF16:
		s.torch.NormalBF16(dst)
	default:
		s.torch.Normal(dst)
	}
}
