package engine

import (
	"sync"
	"time"

	"skald/host/music3"
)

// rates remember how long work took, to tell how long it will take. They outlive a
// song, so that the second one knows from its start.
type rates struct {
	frame   rate // seconds an iteration of the frame loop
	flow    rate // seconds a latent and step
	vocoder rate // seconds a latent
}

type rate struct {
	mu      sync.Mutex
	seconds float64
}

// add takes in that n units took d, the newest weighing half.
func (r *rate) add(d time.Duration, n int) {
	if n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x := d.Seconds() / float64(n)
	if r.seconds == 0 {
		r.seconds = x
	}
	r.seconds = (r.seconds + x) / 2
}

func (r *rate) get() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seconds
}

// report fills in what every progress has and hands it on.
func (s *singing) report(p Progress) {
	now := time.Now()
	s.e.lastProgress.Store(now.UnixNano())
	if s.r.Progress == nil {
		return
	}
	p.MaxFrames = s.r.MaxFrames
	p.Elapsed = now.Sub(s.start)
	p.ETA = s.eta(p)
	s.r.Progress(p)
}

// eta estimates the time to the song's end, on the assumption that it uses all its
// frames; 0 while a needed rate is not known.
func (s *singing) eta(p Progress) time.Duration {
	r := &s.e.rates
	frame, flow, vocoder := r.frame.get(), r.flow.get(), r.vocoder.get()
	frames, left := s.r.MaxFrames, 0.0
	switch p.Stage {
	case StageFlow, StageVocoder:
		frames = p.Frames
	case StageAR:
		if p.Frames > 0 && frame == 0 {
			frame = (p.Elapsed - s.spent[StagePrompt] - s.spent[StageQueue]).Seconds() / float64(p.Frames)
		}
		left = float64(frames-p.Frames) * frame
	default:
		left = float64(frames) * frame
	}
	if frame == 0 || flow == 0 || vocoder == 0 {
		return 0
	}
	for _, w := range music3.Windows(s.e.model.Config.ConditionEncoder, frames) {
		steps, blocks := 1.0, 1.0 // of this window still to do
		switch done := p.Fraction*float64(p.Windows) - float64(w.Index); {
		case p.Windows == 0 || done <= 0:
		case p.Stage == StageFlow:
			steps = max(0, 1-done)
		case p.Stage == StageVocoder:
			steps, blocks = 0, max(0, 1-done)
		}
		if p.Windows > 0 && w.Index < p.Window {
			continue
		}
		left += float64(w.Latents) * (steps*flow*float64(s.r.Steps) + blocks*vocoder)
	}
	return time.Duration(left * float64(time.Second))
}
