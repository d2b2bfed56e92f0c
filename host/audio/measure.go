package audio

import (
	"fmt"
	"math"
)

// SilenceLevel is the magnitude below which a sample counts as silence: -60 dB of
// full scale.
const SilenceLevel = 1e-3

// Stats are what [Measure] found. Values are taken over the finite samples of all
// channels.
type Stats struct {
	Samples int     // of each channel
	RMS     float64 // root of the mean square
	Peak    float64 // largest magnitude
	DC      float64 // mean of the channel whose mean is farthest from zero

	NonFinite        int // samples that are NaN or infinite
	FirstNonFinite   int // position of the first of them in time, else -1
	NonFiniteChannel int // and its channel, else -1

	Constant bool // every channel holds one value throughout; true of no samples
	Silent   bool // every sample is zero; true of no samples

	// LongestSilence is the largest number of consecutive positions at which every
	// channel is below SilenceLevel.
	LongestSilence int
}

// Measure examines the channels, which must be equally long; it panics when not.
func Measure(channels ...[]float32) Stats {
	s := Stats{FirstNonFinite: -1, NonFiniteChannel: -1, Constant: true, Silent: true}
	if len(channels) == 0 {
		return s
	}
	s.Samples = len(channels[0])
	squares, counted := 0.0, 0
	for ch, c := range channels {
		if len(c) != s.Samples {
			panic(fmt.Sprintf("audio: channel %d has %d samples, channel 0 has %d", ch, len(c), s.Samples))
		}
		sum, n := 0.0, 0
		for i, x := range c {
			if !finite(x) {
				s.NonFinite++
				if s.FirstNonFinite < 0 || i < s.FirstNonFinite {
					s.FirstNonFinite, s.NonFiniteChannel = i, ch
				}
				continue
			}
			v := float64(x)
			sum += v
			squares += float64(v * v)
			s.Peak = max(s.Peak, math.Abs(v))
			n++
			s.Constant = s.Constant && x == c[0]
		}
		if n > 0 && math.Abs(sum/float64(n)) > math.Abs(s.DC) {
			s.DC = sum / float64(n)
		}
		counted += n
	}
	if counted > 0 {
		s.RMS = math.Sqrt(squares / float64(counted))
	}
	s.Constant = s.Constant && s.NonFinite == 0
	s.Silent = s.Peak == 0 && s.NonFinite == 0
	s.LongestSilence = longestSilence(channels)
	return s
}

func longestSilence(channels [][]float32) int {
	longest, run := 0, 0
	for i := range channels[0] {
		run++
		for _, c := range channels {
			if !(c[i] > -SilenceLevel && c[i] < SilenceLevel) {
				run = 0
				break
			}
		}
		longest = max(longest, run)
	}
	return longest
}

// Err is nil for output that may be music. Otherwise it says what is wrong: a number
// that is not finite, no samples, silence, or constant output.
func (s Stats) Err() error {
	switch {
	case s.NonFinite > 0:
		return fmt.Errorf("audio: sample %d of channel %d is not finite, the first of %d such samples",
			s.FirstNonFinite, s.NonFiniteChannel, s.NonFinite)
	case s.Samples == 0:
		return fmt.Errorf("audio: there are no samples")
	case s.Silent:
		return fmt.Errorf("audio: all %d samples of every channel are zero", s.Samples)
	case s.Constant:
		return fmt.Errorf("audio: all %d samples of every channel are the same, peak %g", s.Samples, s.Peak)
	}
	return nil
}
