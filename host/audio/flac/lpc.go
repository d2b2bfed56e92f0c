package flac

import "math"

const (
	// mostOrder is the highest order of linear prediction: the limit of FLAC's
	// streamable subset up to 48 kHz.
	mostOrder = 12
	// coefficientBits is the precision of coefficients, sign included.
	coefficientBits = 14
	// mostShift is the largest shift of coefficients to the right.
	mostShift = 15
)

// predictor predicts a sample as sum(coefficients[j] * sample[i-1-j]) >> shift.
type predictor struct {
	coefficients []int32
	shift        int
}

// predictor fits a linear predictor to a block, of the order that promises the smallest
// size; false if none does.
func (a *analysis) predictor(x []int32, sampleBits int) (predictor, bool) {
	if len(x) <= 2*mostOrder {
		return predictor{}, false
	}
	r := a.autocorrelation(x)
	if r[0] == 0 {
		return predictor{}, false
	}
	coefficients, errors := levinsonDurbin(r)
	best, cost := 0, math.Inf(1)
	for o := range mostOrder {
		// The size of a Gaussian residual of this power, and of the coefficients.
		c := float64(len(x)-o-1)*0.5*math.Log2(max(errors[o]/float64(len(x)), 1e-3)) +
			float64((o+1)*(sampleBits+coefficientBits))
		if c < cost {
			best, cost = o, c
		}
	}
	return quantize(coefficients[best])
}

// autocorrelation is that of the windowed block, for lags 0 to mostOrder. Like all of
// this file's sums it is rounded after every product, so that the same stream comes out
// on processors that can fuse products with sums.
func (a *analysis) autocorrelation(x []int32) [mostOrder + 1]float64 {
	if len(a.window) != len(x) {
		a.window = taper(len(x))
	}
	a.windowed = a.windowed[:0]
	for i, v := range x {
		a.windowed = append(a.windowed, float64(a.window[i]*float64(v)))
	}
	var r [mostOrder + 1]float64
	for lag := range r {
		y := a.windowed[lag:]
		z := a.windowed[:len(y)]
		var s0, s1 float64
		i := 0
		for ; i+1 < len(y); i += 2 {
			s0 += float64(y[i] * z[i])
			s1 += float64(y[i+1] * z[i+1])
		}
		if i < len(y) {
			s0 += float64(y[i] * z[i])
		}
		r[lag] = s0 + s1
	}
	return r
}

// taper is a window that rises over the first quarter and falls over the last. The
// slopes are cubics, close to the cosines of Tukey's window.
func taper(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		d := min(i+1, n-i) // from the nearer end
		t := min(1, float64(4*d)/float64(n+1))
		w[i] = float64(t*t) * (3 - float64(2*t))
	}
	return w
}

// levinsonDurbin solves for the best predictor of every order, 1 to mostOrder, and the
// power of what each leaves.
func levinsonDurbin(r [mostOrder + 1]float64) (coefficients [mostOrder][]float64, errors [mostOrder]float64) {
	var a [mostOrder]float64
	power := r[0]
	for o := range mostOrder {
		reflection := r[o+1]
		for j := range o {
			reflection -= float64(a[j] * r[o-j])
		}
		if power > 0 {
			reflection /= power
		} else {
			reflection = 0 // predicted perfectly already
		}
		previous := a
		a[o] = reflection
		for j := range o {
			a[j] = previous[j] - float64(reflection*previous[o-1-j])
		}
		power *= 1 - float64(reflection*reflection)
		coefficients[o] = append([]float64(nil), a[:o+1]...)
		errors[o] = power
	}
	return coefficients, errors
}

// quantize rounds coefficients to integers of coefficientBits with a common shift. The
// error of each is carried over to the next. False means that they are too large.
func quantize(c []float64) (predictor, bool) {
	largest := 0.0
	for _, v := range c {
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 || math.IsNaN(largest) || math.IsInf(largest, 0) {
		return predictor{}, false
	}
	_, exponent := math.Frexp(largest) // largest < 2^exponent
	shift := min(mostShift, coefficientBits-1-exponent)
	if shift < 0 {
		return predictor{}, false
	}
	const limit = 1 << (coefficientBits - 1)
	p := predictor{coefficients: make([]int32, len(c)), shift: shift}
	carried := 0.0
	for i, v := range c {
		carried += math.Ldexp(v, shift)
		q := min(max(math.RoundToEven(carried), -limit), limit-1)
		carried -= q
		p.coefficients[i] = int32(q)
	}
	return p, true
}
