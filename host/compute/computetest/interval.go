package computetest

import (
	"math"

	"skald/host/compute"
)

// u is the largest relative error of rounding to float32.
const u = 1.0 / (1 << 24)

// round rounds to float32, and then to bfloat16 when d is BF16, nearest even.
func round(v float64, d compute.DType) float64 {
	x := float32(v)
	if d != compute.BF16 || x != x {
		return float64(x)
	}
	b := math.Float32bits(x)
	low := b & 0xffff
	b &^= 0xffff
	if low > 0x8000 || low == 0x8000 && b&0x10000 != 0 {
		b += 0x10000
	}
	return float64(math.Float32frombits(b))
}

// interval is the values a result may have.
type interval struct{ lo, hi float64 }

func exactly[T float32 | float64](v T) interval { return interval{float64(v), float64(v)} }

// within is v with an absolute error.
func within(v, err float64) interval { return interval{v - err, v + err} }

func (a interval) holds(v float64) bool { return a.lo <= v && v <= a.hi }

func (a interval) add(b interval) interval { return interval{a.lo + b.lo, a.hi + b.hi} }

func (a interval) neg() interval { return interval{-a.hi, -a.lo} }

func (a interval) mul(b interval) interval {
	p, q, r, s := a.lo*b.lo, a.lo*b.hi, a.hi*b.lo, a.hi*b.hi
	return interval{min(p, q, r, s), max(p, q, r, s)}
}

// widen adds n float32 roundings' worth of relative error.
func (a interval) widen(n float64) interval {
	return interval{a.lo - n*u*math.Abs(a.lo), a.hi + n*u*math.Abs(a.hi)}
}

// store is r(): rounding is monotonic, so the bounds round.
func (a interval) store(d compute.DType) interval {
	return interval{round(a.lo, d), round(a.hi, d)}
}

// steps is how many numbers of the narrower float type that fits both bounds lie in a.
func (a interval) steps() int64 {
	lo, hi := order(a.lo), order(a.hi)
	if lo&0xffff == 0 && hi&0xffff == 0 {
		return (hi - lo) >> 16
	}
	return hi - lo
}

// order maps float32 to integers in order.
func order(v float64) int64 {
	b := int64(math.Float32bits(float32(math.Abs(v))))
	if v < 0 {
		return -b
	}
	return b
}

// sum is a float32 sum of terms. Whatever its order, its error stays below
// 2 + 0.75*sqrt(n) roundings of the sum of absolute values: n would be the bound if
// every rounding went the same way, and random ones add up like a square root. Measured
// over all cases here, the portable kernels need 1.1 + 0.5*sqrt(n).
type sum struct {
	value, size float64
	terms       int
}

func (s *sum) add(v float64) {
	s.value += v
	s.size += math.Abs(v)
	s.terms++
}

// products is the sum of x[i]*y[i].
func products(x, y []float32) sum {
	var value, size float64
	for i, a := range x {
		p := float64(a) * float64(y[i])
		value += p
		size += math.Abs(p)
	}
	return sum{value, size, len(x)}
}

func (s *sum) interval() interval {
	return within(s.value, u*s.size*(2+0.75*math.Sqrt(float64(s.terms))))
}

// intervals applies f to 0..n-1.
func intervals(n int, f func(i int) interval) []interval {
	v := make([]interval, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}
