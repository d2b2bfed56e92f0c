package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSoftmaxRowOfLevels goes through rows step by step, with scores from even to
// far apart, and compares weights and total with float64: each exponential within 3
// roundings, and within 1 more for each rounding of its argument.
func TestSoftmaxRowOfLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	test := func(t *testing.T, softmax func(p []float32, scale float32, state *softmaxState) float32) {
		count := 0
		for _, n := range vectorSizes()[1:] {
			for _, spread := range []float64{0.1, 1, 10, 100} {
				for _, scale := range []float32{0.125, 1, -0.5} {
					state := softmaxState{top: negInf}
					top, total := math.Inf(-1), 0.0
					for step := range 3 {
						p := guarded[float32](t, n)
						scores, next := make([]float64, n), top
						for i := range p {
							p[i] = float32(r.NormFloat64() * spread)
							scores[i] = float64(p[i]) * float64(scale)
							next = max(next, scores[i])
						}
						shrink := softmax(p, scale, &state)
						check := func(what string, got float32, x, want float64) {
							t.Helper()
							allowed := want * (4 + 3*math.Abs(x)) * 0x1p-24
							if e := math.Abs(float64(got) - want); !(e <= allowed+0x1p-125) {
								t.Fatalf("%d scores spread %g, step %d: %s is %g, want %g", n, spread, step, what, got, want)
							}
						}
						if step > 0 {
							check("shrink", shrink, top-next, math.Exp(top-next))
						} else if shrink != 0 {
							t.Fatalf("shrink of nothing is %g", shrink)
						}
						total *= math.Exp(top - next)
						for i, s := range scores {
							check("a weight", p[i], math.Max(math.Abs(s), math.Abs(next)), math.Exp(s-next))
							total += float64(p[i])
						}
						top = next
						check("the top", state.top+1000, 0, top+1000)
						check("the total", state.total, 10+math.Abs(top)+float64(n)/8, total)
						count += n
					}
				}
			}
		}
		t.Logf("%d weights", count)
	}
	t.Run("go", func(t *testing.T) { test(t, softmaxRow) })
	forLevels(t, func(t *testing.T, k kernels) { test(t, k.softmaxRow) })
}

// TestSoftmaxRowNotFinite: a NaN or +Inf among the scores must not vanish.
func TestSoftmaxRowNotFinite(t *testing.T) {
	test := func(t *testing.T, softmax func(p []float32, scale float32, state *softmaxState) float32) {
		count := 0
		for _, n := range vectorSizes()[1:] {
			for at := range n {
				for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
					p := make([]float32, n)
					p[at] = bad
					state := softmaxState{top: negInf}
					softmax(p, 1, &state)
					if state.total-state.total == 0 {
						t.Fatalf("%v at %d of %d: the total is %g", bad, at, n, state.total)
					}
					count++
				}
			}
		}
		t.Logf("%d rows", count)
	}
	t.Run("go", func(t *testing.T) { test(t, softmaxRow) })
	forLevels(t, func(t *testing.T, k kernels) { test(t, k.softmaxRow) })
}
