package cpu

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// ulps is the distance of got from want in units of the last float32 place of want.
func ulps(got float32, want float64) float64 {
	switch {
	case math.IsNaN(want) || math.Abs(want) > math.MaxFloat32*(1+0x1p-25):
		if same := float32(want); got == same || got != got && same != same {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(float64(got), 0) || got != got:
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e, -125)-24)
}

// TestFunctions compares with float64 over a regular sample of all bit patterns of
// float32, dense around the interesting arguments.
func TestFunctions(t *testing.T) {
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		name string
		got  func(float32) float32
		want func(float64) float64
	}{
		{"exp", exp, math.Exp}, {"sigmoidLinear", sigmoidLinear, silu}, {"tanh", tanh, math.Tanh}, {"sin", sin, math.Sin},
	} {
		t.Run(c.name, func(t *testing.T) {
			var worst float64
			var at float32
			count := 0
			try := func(x float32) {
				count++
				if e := ulps(c.got(x), c.want(float64(x))); e > worst {
					worst, at = e, x
				}
			}
			for b := uint64(0); b < 1<<32; b += 2039 {
				try(math.Float32frombits(uint32(b)))
			}
			for x := float32(-130); x < 130; x += 0.0003 {
				try(x)
			}
			for i := range 2000 { // near multiples of pi, and of ln 2
				try(float32(float64(i) * math.Pi / 2))
				try(float32(float64(i-1000) * math.Ln2 / 64))
			}
			t.Logf("%s: %d arguments, worst error %.5f ulp at %g", c.name, count, worst, at)
			if worst > 0.501 {
				t.Errorf("%s(%g) = %g, want %g: %.4f ulp", c.name, at, c.got(at), c.want(float64(at)), worst)
			}
		})
	}
}

// TestSinExact compares with a sine in 320 bits, which needs no trust in float64.
func TestSinExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var worst float64
	count := 0
	try := func(x float32) {
		count++
		want := bigSin(x)
		if e := ulps(sin(x), want); e > worst {
			worst = e
			if e > 0.501 {
				t.Errorf("sin(%g) = %g, want %g: %.4f ulp", x, sin(x), want, e)
			}
		}
	}
	for range 4000 {
		try(math.Float32frombits(r.Uint32N(0x7f800000) | r.Uint32()&0x80000000))
	}
	for i := range 3000 { // the float32 nearest to multiples of pi, small to large
		n := math.Floor(math.Exp(float64(i) * 0.0285))
		try(float32(n * math.Pi))
	}
	try(math.MaxFloat32)
	try(0)
	try(1 << 27)
	try(math.Nextafter32(1<<27, 0))
	t.Logf("%d arguments, worst error %.5f ulp", count, worst)
}

// bigSin reduces x by a pi of 320 bits and sums the Taylor series.
func bigSin(x float32) float64 {
	const prec = 320
	// 100 digits, more than the 128 + 24 + 53 bits that the largest float32 asks for.
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798", 10, prec, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	v := new(big.Float).SetPrec(prec).SetFloat64(float64(x))
	q := new(big.Float).SetPrec(prec).Quo(v, pi)
	n, _ := q.Add(q, big.NewFloat(math.Copysign(0.5, float64(x)))).Int(nil)
	r := new(big.Float).SetPrec(prec).SetInt(n)
	r.Sub(v, r.Mul(r, pi))
	square := new(big.Float).SetPrec(prec).Mul(r, r)
	term, sum := new(big.Float).Copy(r), new(big.Float).Copy(r)
	for k := int64(2); k < 80; k += 2 {
		term.Quo(term.Mul(term, square), new(big.Float).SetInt64(-k*(k+1)))
		sum.Add(sum, term)
	}
	s, _ := sum.Float64()
	if n.Bit(0) == 1 {
		return -s
	}
	return s
}
