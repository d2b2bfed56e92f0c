package resample

import (
	"fmt"
	"math/bits"
)

// The rates, in Hz, between which a [Resampler] converts. They bound the memory that a
// filter takes to 20 MB, at the steepest ratio.
const (
	MinRate = 8000
	MaxRate = 192000
)

// Resampler converts a stream. It is not safe for concurrent use.
type Resampler struct {
	filter *filter
	up     int64 // output rate, divided by the greatest common divisor of both
	down   int64 // input rate, likewise

	input [][]float32 // by channel: the samples that later outputs still need
	first int64       // position of input[c][0] in the stream; negative before it begins
	taken int64       // samples received
	made  int64       // samples returned

	output [][]float32
	ended  bool
}

// New prepares a conversion from one rate to another, both in Hz and between [MinRate]
// and [MaxRate]. The same rate twice passes samples through unchanged.
func New(from, to, channels int) (*Resampler, error) {
	for _, rate := range []int{from, to} {
		if rate < MinRate || rate > MaxRate {
			return nil, fmt.Errorf("resample: sample rate %d Hz: expected %d to %d", rate, MinRate, MaxRate)
		}
	}
	if channels < 1 {
		return nil, fmt.Errorf("resample: %d channels: expected 1 or more", channels)
	}
	d := gcd(from, to)
	r := &Resampler{up: int64(to / d), down: int64(from / d)}
	r.filter = design(int(r.up), int(r.down))
	r.input, r.output = make([][]float32, channels), make([][]float32, channels)
	// The signal before the stream is silence.
	r.first = int64(-(r.filter.taps/2 - 1))
	for c := range r.input {
		r.input[c] = make([]float32, -r.first)
	}
	return r, nil
}

// Length is how many samples a stream of n becomes: n*to/from, rounded up. It panics if
// that does not fit 64 bits.
func Length(n int64, from, to int) int64 {
	d := gcd(from, to)
	up, down := uint64(to/d), uint64(from/d)
	hi, lo := bits.Mul64(uint64(n), up)
	lo, carry := bits.Add64(lo, down-1, 0)
	q, _ := bits.Div64(hi+carry, lo, down)
	return int64(q)
}

// Process takes the next samples, one equally long slice for each channel, and returns
// those of the output that no later input changes; there may be none. The result is
// valid until the next call.
func (r *Resampler) Process(channels ...[]float32) ([][]float32, error) {
	if r.ended {
		return nil, fmt.Errorf("resample: samples after the end of the stream")
	}
	if len(channels) != len(r.input) {
		return nil, fmt.Errorf("resample: %d channels of samples: expected %d", len(channels), len(r.input))
	}
	for c := range channels {
		if len(channels[c]) != len(channels[0]) {
			return nil, fmt.Errorf("resample: channel %d has %d samples, channel 0 has %d: expected as many", c, len(channels[c]), len(channels[0]))
		}
	}
	for c := range channels {
		r.input[c] = append(r.input[c], channels[c]...)
	}
	r.taken += int64(len(channels[0]))
	// The last sample that output i needs lies taps/2 after the one at or before it.
	end := max(0, r.taken-int64(r.filter.taps/2))
	return r.produce(Length(end, int(r.down), int(r.up))), nil
}

// Flush ends the stream and returns the rest of its output, which then has
// [Length] samples in all.
func (r *Resampler) Flush() [][]float32 {
	if !r.ended {
		r.ended = true
		for c := range r.input {
			r.input[c] = append(r.input[c], make([]float32, r.filter.taps/2)...)
		}
		return r.produce(Length(r.taken, int(r.down), int(r.up)))
	}
	return r.produce(r.made)
}

// produce makes the samples up to the given one and forgets the input before it.
func (r *Resampler) produce(end int64) [][]float32 {
	for c := range r.output {
		r.output[c] = r.output[c][:0]
	}
	for ; r.made < end; r.made++ {
		at := r.made * r.down
		start := at/r.up - int64(r.filter.taps/2-1) - r.first
		r.filter.apply(r.output, r.input, int(start), int(at%r.up))
	}
	needed := r.made*r.down/r.up - int64(r.filter.taps/2-1) - r.first
	if needed = min(needed, int64(len(r.input[0]))); needed > 0 {
		for c := range r.input {
			r.input[c] = append(r.input[c][:0], r.input[c][needed:]...)
		}
		r.first += needed
	}
	return r.output
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
