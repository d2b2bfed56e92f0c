package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"skald/host/music3"
)

// runFrames is the goroutine of the frame loop: it admits waiting songs, computes their
// prompts piece by piece, and takes one step of all songs at a time.
func (e *Engine) runFrames() {
	for {
		singers, admitted := e.admit()
		if singers == nil {
			return
		}
		if err := e.guard(func() error { return e.advance(singers, admitted) }); err != nil {
			e.log.Error("frame loop failed", "songs", len(singers), "error", err)
			e.loop.Sync() // forgets the failure, which is told already
			for _, s := range singers {
				s.cancel(err)
			}
		}
	}
}

// guard turns a panic into an error, so that a bug costs songs and not the server.
func (e *Engine) guard(f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			e.log.Error("panic in the engine", "panic", x, "stack", string(debug.Stack()))
			err = fmt.Errorf("engine fault: %v", x)
		}
	}()
	return f()
}

// admit drops songs that left, lets waiting ones in while there is room, and waits for
// work. It returns nil when the engine closes. Songs are admitted in order: one that
// does not fit holds back those behind it, so that it cannot starve.
func (e *Engine) admit() (singers, admitted []*singing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		e.singers = slices.DeleteFunc(e.singers, func(s *singing) bool {
			if s.ctx.Err() == nil {
				return false
			}
			e.loop.Retire(s.voice)
			s.inFrames = false
			e.retire(s)
			return true
		})
		e.usage.KVBlocksTaken, e.usage.KVBlocks = e.loop.KVBlocks()
		for len(e.waiting) > 0 && len(e.singers) < e.songs && e.closing.Err() == nil {
			s := e.waiting[0]
			now, ever := e.loop.Fits(len(s.prompt.IDs), s.r.MaxFrames)
			if !ever {
				positions := 2 * (len(s.prompt.IDs) + s.r.MaxFrames + 1)
				s.cancel(&MemoryError{What: "the song's KV cache", Need: e.model.KVBytes(positions), Have: e.model.KVBytes(e.positions)})
			} else if !now && len(e.singers) > 0 {
				break
			}
			e.waiting = e.waiting[1:]
			if s.ctx.Err() != nil {
				e.retire(s)
				continue
			}
			s.inFrames = true
			s.spent[StageQueue] = time.Since(s.queued)
			e.singers, admitted = append(e.singers, s), append(admitted, s)
		}
		if len(e.singers) > 0 {
			return slices.Clone(e.singers), admitted
		}
		if e.closing.Err() != nil {
			return nil, nil // those that wait leave by themselves
		}
		e.framesGo.Wait()
	}
}

// advance starts the admitted songs, computes one piece of one prompt, and takes a step
// of all songs whose prompts are done.
func (e *Engine) advance(singers, admitted []*singing) error {
	for _, s := range admitted {
		s.report(Progress{Stage: StagePrompt})
		if err := e.loop.Start(s.voice, s.prompt.IDs, s.prompt.Unconditional); err != nil {
			s.cancel(err)
		}
	}
	if i := slices.IndexFunc(singers, func(s *singing) bool { return !s.ready && s.ctx.Err() == nil }); i >= 0 {
		if err := e.prefill(singers[i]); err != nil {
			return err
		}
	}
	// Voices of the two generators cannot share a step.
	for _, kind := range []RNG{Philox, Torch} {
		var group []*singing
		for _, s := range singers {
			if s.ready && s.r.RNG == kind && s.ctx.Err() == nil && s.voice.End() == music3.Singing {
				group = append(group, s)
			}
		}
		if len(group) > 0 {
			if err := e.step(group); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) prefill(s *singing) error {
	began := time.Now()
	done, err := e.loop.Prefill(s.voice, s.prompt.Unconditional)
	if err != nil {
		return err
	}
	s.took(StagePrompt, began)
	s.ready = done
	if err := s.voice.Err(); err != nil {
		s.cancel(numeric(StagePrompt, err))
	}
	return nil
}

// step sings one frame of each song.
func (e *Engine) step(group []*singing) error {
	began := time.Now()
	voices := make([]*music3.Voice, len(group))
	before := make([]int, len(group)) // iterations
	for i, s := range group {
		voices[i], before[i] = s.voice, s.voice.Iterations()
		select {
		case <-s.r.Finish:
			s.voice.Finish()
		default:
		}
	}
	voices = slices.DeleteFunc(voices, func(v *music3.Voice) bool { return v.End() != music3.Singing })
	if len(voices) > 0 {
		if err := e.loop.Step(voices); err != nil {
			return err
		}
		if err := e.loop.Sync(); err != nil {
			return err
		}
		e.rates.frame.add(time.Since(began), 1)
	}
	for i, s := range group {
		s.took(StageAR, began)
		v := s.voice
		if v.Iterations() > before[i] {
			s.song.Codes = append(s.song.Codes, slices.Clone(v.Codes()))
		}
		s.report(Progress{Stage: StageAR, Fraction: float64(v.Frames()) / float64(v.MaxFrames), Frames: v.Frames()})
		if v.End() != music3.Singing {
			s.endFrames()
		}
		e.publish(s)
	}
	return nil
}

// endFrames notes how the song ended.
func (s *singing) endFrames() {
	v := s.voice
	switch {
	case v.Err() != nil:
		s.cancel(numeric(StageAR, v.Err()))
	case v.Frames() == 0 && v.End() == music3.EndCaller:
		s.cancel(&RequestError{Field: "finish", Message: "the song was finished before its first frame"})
	case v.Frames() == 0:
		s.cancel(&RequestError{Field: "lyrics", Message: music3.ErrNoFrames.Error()})
	}
	s.song.Frames = v.Frames()
	switch {
	case v.End() == music3.EndToken && (s.r.Replay == nil || s.r.Replay.EndedByToken):
		s.song.EndReason = EndEOS
	case v.End() == music3.EndCaller:
		s.song.EndReason = EndFinished
	default:
		s.song.EndReason = EndLength
	}
	if s.trace != nil && s.ctx.Err() == nil {
		if err := s.trace.frames(); err != nil {
			s.cancel(err)
		}
	}
}

// publish tells the renderer of new frames, and lets a song that has all of them out of
// the frame loop.
func (e *Engine) publish(s *singing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.frames, s.sung = s.voice.Frames(), s.voice.End() != music3.Singing
	if s.sung {
		e.loop.Retire(s.voice)
		s.inFrames = false
		e.singers = slices.DeleteFunc(e.singers, func(x *singing) bool { return x == s })
		if s.ctx.Err() != nil {
			e.retire(s)
		}
	}
	e.windowGo.Signal()
}

// numeric names the stage of a failed computation; other errors stay as they are.
func numeric(stage Stage, err error) error {
	var bad *music3.NonFiniteError
	if errors.As(err, &bad) {
		return &NumericError{Stage: stage, What: bad.What}
	}
	return err
}
