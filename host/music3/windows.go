package music3

import (
	"fmt"

	"skald/host/checkpoint"
)

// What the reference fixes for windows, in code rather than configuration.
const (
	windowFrames = 200  // frames of a full window
	hopFrames    = 100  // frames from one window's start to the next
	carryLatents = 172  // latents handed from window to window
	cropLeft     = 86   // latents dropped at the start of every window but the first
	cropRight    = 258  // latents dropped at the end of every window but the last
	MaxFrames    = 9000 // of one song
)

// Window is one span of frames that is turned into sound by itself.
type Window struct {
	Index      int
	Start, End int // frames
	Latents    int
	Left       int // samples to drop at the start
	Right      int // samples to drop at the end
}

// Hop is the number of frames to the start of the next window.
func (w Window) Hop() int { return hopFrames }

// Windows cuts a song of the given number of frames. Neighbours overlap by half; the
// last may be shorter.
func Windows(c checkpoint.ConditionEncoder, frames int) []Window {
	count := 1
	if frames > windowFrames {
		count = (frames - 1) / hopFrames
	}
	out := make([]Window, count)
	for k := range out {
		start := k * hopFrames
		end := min(start+windowFrames, frames)
		w := Window{Index: k, Start: start, End: end, Latents: Latents(c, end-start)}
		if k > 0 {
			w.Left = cropLeft * c.OutputHopLength
		}
		if k < count-1 {
			w.Right = cropRight * c.OutputHopLength
		}
		out[k] = w
	}
	return out
}

// checkWindows reports a rate of latents at which a full window is shorter than what its
// two neighbours play of it, so that parts of the song would belong to none.
func checkWindows(c checkpoint.ConditionEncoder) error {
	if n := Latents(c, windowFrames); n < cropLeft+cropRight {
		return fmt.Errorf("music3: condition_encoder/config.json: by its sampling rates and hop lengths %d frames become %d latents, "+
			"expected at least %d: the windows of a song would not meet", windowFrames, n, cropLeft+cropRight)
	}
	return nil
}

// ReadyWindow returns window k of a song that has sung some frames, if it can be
// rendered: all windows of a song that has ended, and before that those that are known
// to be full and not the last, once a frame beyond their end is sung.
func ReadyWindow(c checkpoint.ConditionEncoder, k, frames int, ended bool) (w Window, last, ok bool) {
	if !ended {
		end := k*hopFrames + windowFrames
		if frames <= end {
			return Window{}, false, false
		}
	}
	all := Windows(c, frames)
	if k >= len(all) {
		return Window{}, false, false
	}
	return all[k], ended && k == len(all)-1, true
}

// carrySpan is the span of a window's latents that the next window begins with.
func carrySpan(latents int) (lo, hi int) {
	lo = max(0, latents-2*carryLatents)
	return lo, max(lo, latents-carryLatents)
}
