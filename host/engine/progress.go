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
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.r.Progress(p)
}

// eta estimates the time to the song's end, on the assumption that it uses all its
// frames; 0 while a needed rate is not known.
func (s *singing) eta(p Progress) time.Duration {
	r := &s.e.rates
	frame, flow, vocoder := r.frame.get(), r.flow.get(), r.vocoder.get()
	if frame == 0 || flow == 0 || vocoder == 0 {
		return 0
	}
	s.e.mu.Lock()
	sung, total, window := s.frames, s.r.MaxFrames, s.window
	if s.sung {
		total = s.frames
	}
	s.e.mu.Unlock()
	left := float64(total-sung) * frame
	windows := music3.Windows(s.e.model.Config.ConditionEncoder, total)
	for _, w := range windows[min(window, len(windows)):] {
		left += float64(w.Latents) * (flow*float64(s.r.Steps) + vocoder)
	}
	if window < len(windows) && (p.Stage == StageFlow || p.Stage == StageVocoder) {
		w, done := windows[window], p.Fraction*float64(len(windows))-float64(window)
		latents := float64(w.Latents) * min(max(done, 0), 1)
		left -= latents * flow * float64(s.r.Steps)
		if p.Stage == StageVocoder {
			left -= latents*vocoder + (float64(w.Latents)-latents)*flow*float64(s.r.Steps)
		}
	}
	return time.Duration(max(left, 0) * float64(time.Second))
}
