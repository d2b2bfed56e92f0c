package rng

import "math"

// Double-precision functions for the draws that torch makes in float64 and then
// rounds to float32. Package math would do, but its results differ between
// architectures in the last bit, and so, once in some 10^9 draws, would ours.

// negLog is -log(1 - k/2^53) for k in [0, 2^53); the argument is exact. The error
// is below 1 ulp (0.83 measured over 200,000 values).
func negLog(k uint64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01 // 21 bits fewer than a float64: e*ln2Hi is exact
		ln2Lo = 1.90821492927058770002e-10
	)
	// w = m * 2^e with m in [sqrt(1/2), sqrt(2)), and f = m - 1, all exact.
	w := float64(uint64(1<<53)-k) * (1.0 / (1 << 53))
	m, exp := math.Frexp(w)
	if m < math.Sqrt2/2 {
		m *= 2
		exp--
	}
	f, e := m-1, float64(exp)
	// log(1+f) = 2 atanh(s) with s = f/(2+f), as 2s = f - s*f and s*f = f*f/2 -
	// s*f*f/2: the rounded terms are small beside the exact f.
	s := f / (2 + f)
	z := float64(s * s)
	r := 0.0
	for i := len(atanh) - 1; i >= 0; i-- {
		r = float64(z * (atanh[i] + r))
	}
	half := float64(0.5 * float64(f*f))
	lo := float64(s*(half+r)) + float64(e*ln2Lo)
	return ((half - lo) - f) - float64(e*ln2Hi)
}

// atanh are the Taylor coefficients of 2 atanh(s)/s - 2 in s^2; s^2 < 0.0295.
var atanh = [...]float64{2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23}

// sincos64 is the sine and cosine of x in [0, 2 pi], to a few ulp.
func sincos64(x float64) (sin, cos float64) {
	const (
		halfPiHi  = 1.57079632673412561417e+00 // 33 bits
		halfPiMid = 6.07710050630396597660e-11 // the next 33
		halfPiLo  = 2.02226624879595063154e-21
	)
	q := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	x -= float64(q * halfPiHi)
	x -= float64(q * halfPiMid)
	x -= float64(q * halfPiLo)
	z := float64(x * x)
	s, c := 0.0, 0.0
	for k := 18; k >= 4; k -= 2 { // Taylor series; x is at most pi/4
		c = float64(-z / float64(k*(k-1)) * (1 + c))
		s = float64(-z / float64(k*(k+1)) * (1 + s))
	}
	s = float64(-z / 6 * (1 + s))
	half := float64(0.5 * z)
	s, c = x+float64(x*s), 1-(half+float64(half*c))
	switch int(q) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	default:
		return -c, s
	}
}
