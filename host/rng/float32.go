package rng

import "math"

// The functions here are the single-precision logarithm, sine and cosine of the
// Cephes library (Moshier, 1989) with one fixed order of operations: the one that
// torch's AVX2 code has after the compiler contracted products that feed sums. A
// line with fma32 rounds once; everything else rounds after every operation, which
// the conversions enforce where the compiler may fuse. A device that wants the same
// bits uses its own correctly rounded fma, multiplication, addition and square root
// in this order.

// fma32 is a*b + c, rounded once to float32.
func fma32(a, b, c float32) float32 {
	// A product of two float32 is exact in float64, their sum with c is not, and
	// rounding it twice could go wrong at ties. So the sum is rounded to odd: when
	// it is not exact, of its two neighbours the one with the odd last bit is taken,
	// which no later rounding mistakes for a tie (Boldo and Melquiond, 2008).
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	t := s - p
	lost := (p - (s - t)) + (q - t)
	bits := math.Float64bits(s)
	if lost != 0 && bits&1 == 0 && !math.IsInf(s, 0) && !math.IsNaN(s) {
		if (lost > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}

func mul32(a, b float32) float32 { return float32(a * b) }

// log32 is the natural logarithm of x, which must be normal and positive.
func log32(x float32) float32 {
	// x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
	bits := math.Float32bits(x)
	e := float32(int32(bits>>23) - 126)
	m := math.Float32frombits(bits&^0x7f800000 | 0x3f000000)
	f := m - 1
	if m < 0.707106781186547524 {
		e--
		f += m
	}
	z := mul32(f, f)
	y := float32(7.0376836292e-2)
	y = fma32(y, f, -1.1514610310e-1)
	y = fma32(y, f, 1.1676998740e-1)
	y = fma32(y, f, -1.2420140846e-1)
	y = fma32(y, f, 1.4249322787e-1)
	y = fma32(y, f, -1.6668057665e-1)
	y = fma32(y, f, 2.0000714765e-1)
	y = fma32(y, f, -2.4999993993e-1)
	y = fma32(y, f, 3.3333331174e-1)
	y = mul32(y, f)
	// ln 2 in two parts: -2.12194440e-4 + 0.693359375.
	y = fma32(y, z, mul32(e, -2.12194440e-4))
	y = fma32(-z, 0.5, y)
	return fma32(e, 0.693359375, f+y)
}

// sincos32 is the sine and cosine of x, for x in [0, 8192).
func sincos32(x float32) (sin, cos float32) {
	// The octant, rounded up to an even one, and what remains of x after it; pi/4
	// is subtracted in three parts.
	j := (int32(mul32(x, 1.27323954473516)) + 1) &^ 1
	y := float32(j)
	x = fma32(y, -0.78515625, x)
	x = fma32(y, -2.4187564849853515625e-4, x)
	x = fma32(y, -3.77489497744594108e-8, x)
	z := mul32(x, x)

	c := fma32(2.443315711809948e-5, z, -1.388731625493765e-3)
	c = fma32(c, z, 4.166664568298827e-2)
	c = mul32(c, z)
	c = fma32(c, z, -mul32(z, 0.5))
	c++

	s := fma32(-1.9515295891e-4, z, 8.3321608736e-3)
	s = fma32(s, z, -1.6666654611e-1)
	s = mul32(s, z)
	s = fma32(s, x, x)

	switch j & 6 {
	case 0:
		return s, c
	case 2:
		return c, -s
	case 4:
		return -s, -c
	default:
		return -c, s
	}
}

// normalPair is the Box-Muller transform of u1 in (0, 1] and u2 in [0, 1).
func normalPair(u1, u2 float32) (a, b float32) {
	radius := sqrt32(mul32(-2, log32(u1)))
	sin, cos := sincos32(mul32(2*math.Pi, u2))
	// Adding zero turns -0 into 0, like the addition of the mean does in torch.
	return mul32(radius, cos) + 0, mul32(radius, sin) + 0
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// roundBF16 rounds a finite x to the nearest bfloat16, ties to even.
func roundBF16(x float32) float32 {
	bits := math.Float32bits(x)
	bits += 0x7fff + bits>>16&1
	return math.Float32frombits(bits &^ 0xffff)
}
