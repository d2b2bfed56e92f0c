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

// exp2Table holds 2^(i/32), as bits, less the i that expWide's exponent adds.
var exp2Table = func() (t [32]uint64) {
	for i := range t {
		t[i] = math.Float64bits(math.Exp2(float64(i)/32)) - uint64(i)<<47
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

// exp is e^x, at most 0.5001 ulp from it.
func exp(x float32) float32 {
	switch {
	case x > 89:
		return float32(math.Inf(1))
	case x < -104:
		return 0
	}
	return float32(expWide(float64(x)))
}

// sigmoidLinear is x / (1 + e^-x), at most 0.5001 ulp from it.
func sigmoidLinear(x float32) float32 {
	if x < -104 { // the exact value is under half the smallest float32
		if x < -math.MaxFloat32 {
			return x * 0
		}
		return float32(math.Copysign(0, -1))
	}
	if x > 104 {
		return x
	}
	return float32(float64(x) / (1 + expWide(-float64(x))))
}

// tanh is at most 0.5001 ulp from the hyperbolic tangent.
func tanh(x float32) float32 {
	return float32(math.Tanh(float64(x)))
}

// sin is at most 0.5001 ulp from the sine, for every finite x.
func sin(x float32) float32 {
	return float32(math.Sin(float64(x)))
}
