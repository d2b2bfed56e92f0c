package rng

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA is a*b + c in exact arithmetic, rounded once.
func exactFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(1000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	y, _ := x.Float32()
	return y
}

func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(exp, spread int) float32 {
		m := 1 + float64(r.Uint32N(1<<23))/(1<<23)
		if r.IntN(2) == 0 {
			m = -m
		}
		return float32(math.Ldexp(m, exp+r.IntN(2*spread+1)-spread))
	}
	examined, double := 0, 0
	check := func(a, b, c float32) {
		t.Helper()
		want := exactFMA(a, b, c)
		if got := fma32(a, b, c); got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			double++
		}
		examined++
	}
	for range 200000 {
		check(random(0, 20), random(0, 20), random(0, 40))
	}
	// Products that lie next to a tie of the sum, on either side of it.
	for range 200000 {
		c := random(0, 0)
		tie := math.Ldexp(1, -24)                      // half of the last bit of c
		a := float32(1 + math.Ldexp(1, -1-r.IntN(23))) // a*b is tie, give or take a little
		b := float32(tie / float64(a))
		check(a, b, c)
		check(-a, b, c)
		check(a, math.Nextafter32(b, 1), c)
		// A product far below the half bit decides the tie.
		check(random(-40, 10), random(0, 10), float32(tie))
	}
	// Results below the normal range.
	for range 100000 {
		check(random(-70, 3), random(-70, 3), random(-140, 8))
	}
	check(0, 0, 0)
	check(1, 1, -1)
	check(math.MaxFloat32, 1, -math.MaxFloat32)
	if double == 0 {
		t.Error("no case in which rounding twice goes wrong was examined")
	}
	t.Logf("%d sums exact; rounding twice is wrong in %d of them", examined, double)

	inf := float32(math.Inf(1))
	if x := fma32(inf, 1, 1); x != inf {
		t.Errorf("fma32(inf, 1, 1) = %v", x)
	}
	if x := fma32(inf, 1, -inf); x == x {
		t.Errorf("fma32(inf, 1, -inf) = %v, want NaN", x)
	}
	if x := fma32(math.MaxFloat32, 2, 0); x != inf {
		t.Errorf("fma32 overflows to %v", x)
	}
}

// TestElementary compares with package math, to bounds a little above what was
// measured: it catches a wrong coefficient, not a wrong last bit.
func TestElementary(t *testing.T) {
	var worstLog, worstSin, worstNeg, worstSin64 float64
	n := 0
	for i := uint64(1); i <= 1<<24; i += 37 {
		x := float32(i) / (1 << 24)
		want := math.Log(float64(x))
		worstLog = max(worstLog, math.Abs(float64(log32(x))-want)/max(math.Abs(want), 1e-7))

		a := mul32(2*math.Pi, 1-x)
		sin, cos := sincos32(a)
		s, c := math.Sincos(float64(a))
		worstSin = max(worstSin, math.Abs(float64(sin)-s), math.Abs(float64(cos)-c))

		k := i<<29%(1<<53) | i
		log := -math.Log1p(-float64(k) / (1 << 53))
		worstNeg = max(worstNeg, math.Abs(negLog(k)-log)/log)

		sin64, cos64 := sincos64(float64(a))
		worstSin64 = max(worstSin64, math.Abs(sin64-s), math.Abs(cos64-c))
		n++
	}
	t.Logf("%d arguments: largest errors log32 %.2g, sincos32 %.2g, negLog %.2g, sincos64 %.2g",
		n, worstLog, worstSin, worstNeg, worstSin64)
	for _, c := range []struct {
		name         string
		worst, bound float64
	}{
		{"log32", worstLog, 1.2e-7},
		{"sincos32", worstSin, 1.2e-7},
		{"negLog", worstNeg, 2.3e-16},
		{"sincos64", worstSin64, 2.3e-16},
	} {
		if !(c.worst < c.bound) {
			t.Errorf("%s errs by %g, want below %g", c.name, c.worst, c.bound)
		}
	}
}

func TestNormalPairZero(t *testing.T) {
	a, b := normalPair(1, 0.75) // the radius is zero, the sine negative
	if math.Float32bits(a) != 0 || math.Float32bits(b) != 0 {
		t.Errorf("normalPair(1, 0.75) = %x, %x, want +0, +0", math.Float32bits(a), math.Float32bits(b))
	}
}

func TestNegLogZero(t *testing.T) {
	// Plus zero, so that a weight divided by it is plus infinity, as in torch.
	if x := negLog(0); math.Float64bits(x) != 0 {
		t.Errorf("negLog(0) = %x, want +0", math.Float64bits(x))
	}
}

func TestRoundBF16(t *testing.T) {
	for _, c := range []struct{ in, want uint32 }{
		{0x3f800000, 0x3f800000},
		{0x3f808000, 0x3f800000}, // tie, down to even
		{0x3f808001, 0x3f810000},
		{0x3f818000, 0x3f820000}, // tie, up to even
		{0x3f817fff, 0x3f810000},
		{0xbf818000, 0xbf820000},
		{0x3fffffff, 0x40000000},
	} {
		if got := math.Float32bits(roundBF16(math.Float32frombits(c.in))); got != c.want {
			t.Errorf("roundBF16(%08x) = %08x, want %08x", c.in, got, c.want)
		}
	}
}
