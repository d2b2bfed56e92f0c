package engine

import (
	"time"

	"skald/host/audio"
	"skald/host/music3"
)

// runWindows is the goroutine of the renderer: it turns ready windows into sound, one at
// a time.
func (e *Engine) runWindows() {
	for {
		s, w, last := e.nextWindow()
		if s == nil {
			return
		}
		if err := e.guard(func() error { return e.render(s, w) }); err != nil {
			e.renderer.Sync() // forgets the failure, which is told here
			s.cancel(err)
		}
		e.mu.Lock()
		s.inWindow = false
		s.window++
		if last || s.ctx.Err() != nil {
			e.retire(s)
		}
		e.mu.Unlock()
	}
}

// nextWindow waits for a window that can be rendered. The earliest window of all songs
// comes first, so that every listener hears something soon; among equals the song that
// came first. It returns nil when the engine closes.
func (e *Engine) nextWindow() (best *singing, w music3.Window, last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.closing.Err() != nil {
			return nil, w, false
		}
		for _, s := range e.all {
			// torch's generator draws the noise after all codes.
			if s.ctx.Err() != nil || s.torch != nil && !s.sung {
				continue
			}
			if best != nil && best.window <= s.window {
				continue
			}
			if x, l, ok := music3.ReadyWindow(e.model.Config.ConditionEncoder, s.window, s.frames, s.sung); ok {
				best, w, last = s, x, l
			}
		}
		if best != nil {
			best.inWindow = true
			return best, w, last
		}
		e.windowGo.Wait()
	}
}

// render turns one window into sound and hands it to the song.
func (e *Engine) render(s *singing, w music3.Window) error {
	if s.track == nil {
		if err := s.newTrack(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := e.renderer.Denoise(s.ctx, s.track, s.voice, w); err != nil {
		return numeric(StageFlow, err)
	}
	s.took(StageFlow, began)
	e.rates.flow.add(time.Since(began), w.Latents*s.r.Steps)
	began = time.Now()
	wave, err := e.renderer.Decode(s.ctx, s.track, w)
	if err != nil {
		return numeric(StageVocoder, err)
	}
	s.took(StageVocoder, began)
	e.rates.vocoder.add(time.Since(began), w.Latents)

	if s.trace == nil {
		s.voice.Forget(w.Start + w.Hop())
	}

	p := piece{crop(wave[0], w), crop(wave[1], w)}
	if stats := audio.Measure(p[0], p[1]); stats.NonFinite > 0 {
		return &NumericError{Stage: StageVocoder, What: stats.Err().Error()}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.pieces = append(s.pieces, p)
	s.signal()
	return nil
}

// crop drops what the neighbouring windows play and clamps to [-1, 1].
func crop(x []float32, w music3.Window) []float32 {
	x = x[w.Left : len(x)-w.Right]
	for i, v := range x {
		x[i] = min(max(v, -1), 1)
	}
	return x
}

func (s *singing) newTrack() (err error) {
	o := music3.RenderOptions{Steps: s.r.Steps, Guidance: s.r.Guidance, Noise: s.noise}
	o.Progress = func(stage music3.RenderStage, window, done, total int) {
		s.e.mu.Lock()
		frames, sung := s.frames, s.sung
		s.e.mu.Unlock()
		p := Progress{Stage: StageFlow, Frames: frames, Window: window}
		if stage == music3.StageVocoder {
			p.Stage = StageVocoder
		}
		all := len(music3.Windows(s.e.model.Config.ConditionEncoder, s.r.MaxFrames)) // at most
		if sung {
			all = len(music3.Windows(s.e.model.Config.ConditionEncoder, frames))
			p.Windows = all
		}
		p.Fraction = (float64(window) + float64(done)/float64(total)) / float64(all)
		s.report(p)
	}
	if s.trace != nil {
		o.Trace = s.trace.tensor
	}
	s.track, err = s.e.model.NewTrack(o)
	return err
}
