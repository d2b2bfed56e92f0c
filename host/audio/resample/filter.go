package resample

import "math"

// Passband is the part of the lower Nyquist frequency below which nothing is lost:
// 20 kHz at 44.1 kHz.
const Passband = 0.907

// stopband is the attenuation, in dB, that the window is designed for. Kaiser's formulas
// are approximate: filters of them have up to 2 dB less.
const stopband = 140

const (
	// mostExact is the largest number of phases for which the filter is stored for
	// each; it covers every pair of common rates.
	mostExact = 512
	// oversampling is the number of phases stored otherwise. Cubic interpolation
	// between them errs by less than 3/128*(pi/oversampling)^4, or -185 dB.
	oversampling = 256
)

// filter is a bank of filters of equally many taps, one for every position that an
// output sample can have between two input samples.
type filter struct {
	taps   int // even
	phases int // positions that occur
	bank   []float64
	// interpolated says that bank holds positions -1, 0, ... oversampling+1 in units
	// of 1/oversampling, not each that occurs.
	interpolated bool
}

// design makes the filter for a conversion by up/down, which have no common divisor.
func design(up, down int) *filter {
	if up == down {
		return &filter{taps: 2, phases: 1, bank: []float64{1, 0}}
	}
	// Frequencies in cycles per input sample.
	nyquist := min(1, float64(up)/float64(down)) / 2
	width := (1 - Passband) * nyquist
	cutoff := nyquist - width/2
	// Kaiser's formulas for the length and the window's shape (J. F. Kaiser,
	// "Nonrecursive digital filter design using the I0-sinh window function", 1974).
	taps := int(math.Ceil((stopband-7.95)/(2.285*2*math.Pi*width))) + 1
	taps += taps % 2
	beta := 0.1102 * (stopband - 8.7)

	f := &filter{taps: taps, phases: up}
	if up > mostExact {
		f.interpolated = true
		f.bank = make([]float64, 0, (oversampling+3)*taps)
		for p := -1; p <= oversampling+1; p++ {
			f.appendPhase(float64(p)/oversampling, cutoff, beta)
		}
		return f
	}
	f.bank = make([]float64, 0, up*taps)
	for p := range up {
		f.appendPhase(float64(p)/float64(up), cutoff, beta)
	}
	return f
}

// appendPhase appends the taps for an output at the given fraction of the way from one
// input sample, that of tap taps/2-1, to the next.
func (f *filter) appendPhase(fraction, cutoff, beta float64) {
	half, peak := float64(f.taps/2), bessel0(beta)
	for k := range f.taps {
		t := fraction + half - 1 - float64(k) // distance in input samples
		u := t / half
		if u < -1 || u > 1 {
			f.bank = append(f.bank, 0)
			continue
		}
		h := 2 * cutoff
		if t != 0 {
			h = math.Sin(2*math.Pi*cutoff*t) / (math.Pi * t)
		}
		f.bank = append(f.bank, h*bessel0(beta*math.Sqrt(1-u*u))/peak)
	}
}

// apply appends one output sample to each channel: the one whose first tap falls on
// input[start], at the given phase.
func (f *filter) apply(output, input [][]float32, start, phase int) {
	if f.interpolated {
		f.applyInterpolated(output, input, start, phase)
		return
	}
	taps := f.bank[phase*f.taps:][:f.taps]
	for c := range output {
		output[c] = append(output[c], float32(dot(taps, input[c][start:])))
	}
}

// dot is the product of taps with as many samples. The conversions keep the processor
// from fusing the multiplication with the addition, so that every kind of processor
// finds the same sum.
func dot(taps []float64, x []float32) float64 {
	x = x[:len(taps)]
	var s0, s1 float64
	for i := 0; i+1 < len(taps); i += 2 {
		s0 += float64(taps[i] * float64(x[i]))
		s1 += float64(taps[i+1] * float64(x[i+1]))
	}
	return s0 + s1
}

// applyInterpolated is apply with the products of the four nearest phases stored,
// weighted as Lagrange's cubic through them asks.
func (f *filter) applyInterpolated(output, input [][]float32, start, phase int) {
	position := phase * oversampling
	row := position / f.phases
	t := float64(position%f.phases) / float64(f.phases)
	weights := [4]float64{
		-t * (t - 1) * (t - 2) / 6,
		(t + 1) * (t - 1) * (t - 2) / 2,
		-(t + 1) * t * (t - 2) / 2,
		(t + 1) * t * (t - 1) / 6,
	}
	rows := f.bank[row*f.taps:]
	for c := range output {
		sum := 0.0
		for i, w := range weights {
			sum += float64(w * dot(rows[i*f.taps:][:f.taps], input[c][start:]))
		}
		output[c] = append(output[c], float32(sum))
	}
}

// bessel0 is the modified Bessel function of the first kind and order zero, by its
// power series.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-18*sum; k++ {
		term *= x / 2 / k
		term *= x / 2 / k
		sum += term
	}
	return sum
}
