package cpu

import "math"

// The functions of this file work in float64 and round once: in Go without vectors
// that costs no more than float32, and makes them right to little over half an ulp.

// log2e32 and ln2by32 are 32/ln 2 and ln 2/32.
const (
	log2e32 = 32 / math.Ln2
	ln2by32 = math.Ln2 / 32
	shift   = 3 << 51 // adding it rounds a float64 to an integer in its low bits
)

// exp2Table holds 2^(i/32), as bits, less the i that expWide's exponent adds. It is
// made of square roots, which every machine rounds alike.
var exp2Table = func() (t [32]uint64) {
	var power [32]float64
	for i := range power {
		power[i] = 1
	}
	root := 2.0
	for bit := 16; bit > 0; bit /= 2 {
		root = math.Sqrt(root)
		for i := range power {
			if i&bit != 0 {
				power[i] *= root
			}
		}
	}
	for i, p := range power {
		t[i] = math.Float64bits(p) - uint64(i)<<47
	}
	return t
}()

// expWide is e^x to 1e-12, for |x| < 700. With n the integer nearest 32x/ln 2, it is
// 2^(n/32) e^r, |r| <= ln 2/64.
func expWide(x float64) float64 {
	rounded := float64(x*log2e32) + shift
	n := math.Float64bits(rounded)
	r := x - float64((rounded-shift)*ln2by32)
	power := math.Float64frombits(exp2Table[n%32] + n<<47)
	r2 := float64(r * r)
	p := float64(r*(1.0/24)) + 1.0/6
	p = float64(p*r) + 0.5
	return power + float64(power*(r+float64(r2*p)))
}

// exp is e^x, at most 0.501 ulp from it.
func exp(x float32) float32 {
	switch {
	case x > 89:
		return float32(math.Inf(1))
	case x < -104: // under half the smallest float32
		return 0
	}
	return float32(expWide(float64(x)))
}

// sigmoidLinear is x / (1 + e^-x), at most 0.501 ulp from it.
func sigmoidLinear(x float32) float32 {
	switch {
	case x > 104:
		return x
	case x < -110: // under half the smallest float32, or NaN for -Inf
		return x * 0
	}
	return float32(float64(x) / (1 + expWide(-float64(x))))
}

// tanh is at most 0.501 ulp from the hyperbolic tangent.
func tanh(x float32) float32 {
	w := float64(x)
	switch {
	case w > 10:
		return 1
	case w < -10:
		return -1
	case math.Abs(w) < 1.0/16: // where 1 - 2/(e^2x + 1) would cancel
		x2 := float64(w * w)
		p := float64(x2*(-17.0/315)) + 2.0/15
		p = float64(x2*p) - 1.0/3
		return float32(w + float64(w*float64(x2*p)))
	}
	return float32(1 - 2/(expWide(2*w)+1))
}

// Pi in three parts. The first two have 27 bits, so that their products with an
// integer of 26 bits are exact.
const (
	pi1 = 0x6487ed5p-25
	pi2 = 0x442d184p-55
	pi3 = math.Pi - pi1 - pi2
)

// sin is at most 0.501 ulp from the sine, for every finite x. With n the integer
// nearest x/pi, it is (-1)^n sin(x - n pi).
func sin(x float32) float32 {
	w := float64(x)
	if math.Abs(w) >= 1<<27 {
		return float32(math.Sin(w))
	}
	rounded := float64(w*(1/math.Pi)) + shift
	n := rounded - shift
	r := w - float64(n*pi1)
	r -= float64(n * pi2)
	r -= float64(n * pi3)

	r2 := float64(r * r) // Taylor to r^15: under 1e-11 of the sum for |r| <= pi/2
	p := float64(r2*(-1.0/1307674368000)) + 1.0/6227020800
	p = float64(r2*p) - 1.0/39916800
	p = float64(r2*p) + 1.0/362880
	p = float64(r2*p) - 1.0/5040
	p = float64(r2*p) + 1.0/120
	p = float64(r2*p) - 1.0/6
	s := r + float64(r*float64(r2*p))
	return float32(math.Float64frombits(math.Float64bits(s) ^ math.Float64bits(rounded)<<63))
}
