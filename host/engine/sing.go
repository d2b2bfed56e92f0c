package engine

import (
	"context"
	"errors"
	"time"

	"skald/host/audio"
	"skald/host/compute"
	"skald/host/music3"
	"skald/host/music3/prompt"
	"skald/host/rng"
)

// Sing makes one song. It waits for its turn. When ctx ends it stops within one
// frame, one flow step or one vocoder block and returns the context's cause.
// Errors: *RequestError (several joined), *NumericError, context errors, ErrClosed.
func (e *Engine) Sing(ctx context.Context, r Request) (*Song, error) {
	s := &singing{e: e, r: r, start: time.Now()}
	var err error
	if s.prompt, s.song.Warnings, err = e.prepare(&s.r); err != nil {
		return nil, err
	}
	s.took(StagePrompt, s.start)

	waitFrom := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.closing, func() { cancel(ErrClosed) })()
	e.waiting.Add(1)
	select {
	case <-e.turn:
		e.waiting.Add(-1)
	case <-ctx.Done():
		e.waiting.Add(-1)
		return nil, context.Cause(ctx)
	}
	e.running.Add(1)
	defer func() {
		e.running.Add(-1)
		e.turn <- struct{}{}
	}()
	s.took(StageQueue, waitFrom)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.finish()
}

// singing is one song on its way.
type singing struct {
	e      *Engine
	r      Request
	prompt prompt.Prompt
	song   Song
	start  time.Time
	spent  map[Stage]time.Duration
	trace  *tracer
	torch  *rng.Torch
	voice  *music3.Voice
	pieces []piece
}

// piece is what a window adds to the song.
type piece [2][]float32

func (s *singing) took(stage Stage, since time.Time) {
	if s.spent == nil {
		s.spent = map[Stage]time.Duration{}
	}
	s.spent[stage] += time.Since(since)
}

// run takes the song through its stages: prompt, frames, then window by window.
func (s *singing) run(ctx context.Context) error {
	e := s.e
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
	began := time.Now()
	s.report(Progress{Stage: StagePrompt})
	if err := e.loop.Start(ctx, s.voice, s.prompt.IDs, s.prompt.Unconditional); err != nil {
		return numeric(StagePrompt, err)
	}
	defer e.loop.Release(s.voice)
	s.took(StagePrompt, began)

	if err := s.singFrames(ctx); err != nil {
		return err
	}
	if s.trace != nil {
		if err := s.trace.frames(); err != nil {
			return err
		}
	}
	return s.render(ctx)
}

// singFrames runs the frame loop until the song ends.
func (s *singing) singFrames(ctx context.Context) error {
	e, v, began := s.e, s.voice, time.Now()
	for v.End() == music3.Singing {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := e.loop.Step([]*music3.Voice{v}); err != nil {
			return numeric(StageAR, err)
		}
		s.report(Progress{Stage: StageAR, Fraction: float64(v.Frames()) / float64(v.MaxFrames), Frames: v.Frames()})
	}
	if v.Frames() == 0 {
		return &RequestError{Field: "lyrics", Message: music3.ErrNoFrames.Error()}
	}
	if err := e.loop.Sync(); err != nil {
		return numeric(StageAR, err)
	}
	s.took(StageAR, began)
	e.rates.frame.add(time.Since(began), v.Iterations())
	s.song.Frames = v.Frames()
	switch {
	case v.End() == music3.EndToken && (s.r.Replay == nil || s.r.Replay.EndedByToken):
		s.song.EndReason = EndEOS
	case v.End() == music3.EndCaller:
		s.song.EndReason = EndFinished
	default:
		s.song.EndReason = EndLength
	}
	return nil
}

// render turns the frames into sound, window by window.
func (s *singing) render(ctx context.Context) error {
	e := s.e
	windows := music3.Windows(e.model.Config.ConditionEncoder, s.song.Frames)
	o := music3.RenderOptions{
		Steps: s.r.Steps, Guidance: s.r.Guidance, Noise: s.noise,
		Progress: func(stage music3.RenderStage, window, done, total int) {
			name := StageFlow
			if stage == music3.StageVocoder {
				name = StageVocoder
			}
			s.report(Progress{
				Stage: name, Fraction: (float64(window) + float64(done)/float64(total)) / float64(len(windows)),
				Frames: s.song.Frames, Window: window, Windows: len(windows),
			})
		},
	}
	if s.trace != nil {
		o.Trace = s.trace.tensor
	}
	renderer, err := e.model.NewRenderer(o)
	if err != nil {
		return err
	}
	defer renderer.Close()
	for _, w := range windows {
		began := time.Now()
		if err := renderer.Denoise(ctx, s.voice, w); err != nil {
			return numeric(StageFlow, err)
		}
		s.took(StageFlow, began)
		e.rates.flow.add(time.Since(began), w.Latents*s.r.Steps)
		began = time.Now()
		wave, err := renderer.Decode(ctx, w)
		if err != nil {
			return numeric(StageVocoder, err)
		}
		s.took(StageVocoder, began)
		e.rates.vocoder.add(time.Since(began), w.Latents)
		if err := s.keep(w, wave); err != nil {
			return err
		}
	}
	return nil
}

// keep crops and clamps a window's samples and adds them to the song.
func (s *singing) keep(w music3.Window, wave [2][]float32) error {
	var p piece
	for c, x := range wave {
		x = x[w.Left : len(x)-w.Right]
		for i, v := range x {
			x[i] = min(max(v, -1), 1)
		}
		p[c] = x
	}
	if stats := audio.Measure(p[0], p[1]); stats.NonFinite > 0 {
		return &NumericError{Stage: StageVocoder, What: stats.Err().Error()}
	}
	s.pieces = append(s.pieces, p)
	return nil
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

// finish joins the windows and measures the song.
func (s *singing) finish() (*Song, error) {
	song := &s.song
	for _, p := range s.pieces {
		for c := range p {
			song.Samples[c] = append(song.Samples[c], p[c]...)
		}
	}
	stats := audio.Measure(song.Samples[0], song.Samples[1])
	if err := stats.Err(); err != nil {
		return nil, &NumericError{Stage: StageVocoder, What: err.Error()}
	}
	if s.trace != nil {
		if err := s.trace.waveform(song.Samples); err != nil {
			return nil, err
		}
	}
	song.SampleRate, song.Seed = s.e.info.SampleRate, s.r.Seed
	song.PromptTokens = len(s.prompt.IDs)
	song.RMS, song.Peak = stats.RMS, stats.Peak
	for _, stage := range []Stage{StageQueue, StagePrompt, StageAR, StageFlow, StageVocoder} {
		song.Timings = append(song.Timings, Timing{stage, s.spent[stage]})
	}
	return song, nil
}

// numeric names the stage of a failed computation; other errors stay as they are.
func numeric(stage Stage, err error) error {
	var bad *music3.NonFiniteError
	if errors.As(err, &bad) {
		return &NumericError{Stage: stage, What: bad.What}
	}
	return err
}
