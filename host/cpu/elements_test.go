package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// vectorSizes are lengths around those of all vectors and blocks.
func vectorSizes() []int {
	var sizes []int
	for n := range 70 {
		sizes = append(sizes, n)
	}
	return append(sizes, 127, 128, 129, 1000)
}

// hard are numbers of every kind: ordinary, tiny, huge, halfway between bfloat16
// numbers, subnormal.
func hard(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		v := float32(r.NormFloat64())
		switch r.IntN(8) {
		case 0:
			v = math.Float32frombits(r.Uint32()&0x807fffff | uint32(64+r.IntN(128))<<23)
		case 1:
			v = math.Float32frombits(math.Float32bits(v)&^0xffff | 0x8000)
		case 2:
			v = math.Float32frombits(r.Uint32() & 0x807fffff)
		case 3:
			v = 0
		}
		x[i] = v
	}
	return x
}

// equalLoops are the element-wise loops that round exactly where the portable ones do.
func equalLoops(e *elements) map[string]func(y, a, b, c, d []float32) {
	return map[string]func(y, a, b, c, d []float32){
		"add":        func(y, a, b, _, _ []float32) { e.add(y, a, b) },
		"scale":      func(y, a, _, _, _ []float32) { e.scale(y, a, 0.3) },
		"blend":      func(y, a, b, _, _ []float32) { e.blend(y, a, b, 0.7, -1.1) },
		"step":       func(y, a, _, _, _ []float32) { e.step(y, a, 0.033) },
		"guidedStep": func(y, a, b, _, _ []float32) { e.guidedStep(y, a, b, 1.7, 0.033) },
		"turn":       func(y, a, b, c, _ []float32) { e.turn(y, a, b, c) },
		"rmsScale":   func(y, a, b, _, _ []float32) { e.rmsScale(y, a, b, 1.3) },
		"layerScale": func(y, a, b, c, _ []float32) { e.layerScale(y, a, b, c, 0.1, 1.3) },
		"round":      func(y, _, _, _, _ []float32) { e.round(y) },
	}
}

// TestElementsEqual compares with the portable loops, to the bit, at all lengths, in
// memory that ends where the process may not go.
func TestElementsEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		for _, round := range []rounding{false, true} {
			portable := round.elements()
			loops := equalLoops(k.elements(round))
			for name, want := range equalLoops(&portable) {
				for _, n := range vectorSizes() {
					var mine, theirs [5][]float32
					for i := range mine {
						theirs[i], mine[i] = hard(r, n), guarded[float32](t, n)
						copy(mine[i], theirs[i])
					}
					want(theirs[0], theirs[1], theirs[2], theirs[3], theirs[4])
					loops[name](mine[0], mine[1], mine[2], mine[3], mine[4])
					for i := range mine { // inputs must be as they were
						sameBits(t, fmt.Sprintf("%s, bfloat16 %v, %d numbers, array %d", name, round, n, i), mine[i], theirs[i])
						count += n
					}
				}
			}
		}
		t.Logf("%d numbers", count)
	})
}

// sameBits asks for equality to the bit; a NaN equals any other.
func sameBits(t *testing.T, label string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: number %d is %g (%08x), want %g (%08x)", label, i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// everyFloat calls try with pieces of a sample of all bit patterns, all of them without
// -short, and of what is dense where the functions are not flat.
func everyFloat(try func(x []float32)) (count int) {
	step := uint64(521)
	if testing.Short() {
		step = 39041
	}
	x := make([]float32, 0, 1000) // no multiple of a vector's length
	add := func(v float32) {
		if x = append(x, v); len(x) == cap(x) {
			try(x)
			count += len(x)
			x = x[:0]
		}
	}
	for b := uint64(0); b < 1<<32; b += step {
		add(math.Float32frombits(uint32(b)))
	}
	for v := float32(-130); v < 130; v += 0.003 {
		add(v)
	}
	for i := range 4000 {
		add(float32(float64(i) * math.Pi / 2))
		add(float32(float64(i-2000) * math.Ln2 / 16))
	}
	if len(x) > 0 {
		try(x)
		count += len(x)
	}
	return count
}

// TestFunctionsOfLevels bounds the errors of the functions over all float32. The bounds
// are the worst over every third float32 from 2^-13 to 2^7 of either sign, 2.666, 2.499
// and 0.882 (of all below 0), rounded up; AVX2 and AVX-512 agree to the bit.
func TestFunctionsOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		all := func(float32) bool { return true }
		for _, c := range []struct {
			name   string
			got    func(y, x []float32)
			want   func(float64) float64
			domain func(float32) bool
			bound  float64
		}{
			{"silu", k.f32.silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, all, 2.7},
			{"tanh", k.f32.tanh, math.Tanh, all, 2.55},
			// Never asked for above 0; below, the subnormal numbers.
			{"exp", weights(&k), math.Exp, func(x float32) bool { return -87.3 < x && x <= 0 }, 0.9},
		} {
			var worst float64
			var at float32
			y := make([]float32, 1000)
			count := everyFloat(func(x []float32) {
				c.got(y[:len(x)], x)
				for i, v := range x {
					if !c.domain(v) {
						continue
					}
					if e := ulps(y[i], c.want(float64(v))); !(e <= worst) {
						worst, at = e, v
					}
				}
			})
			t.Logf("%s: %d arguments, worst error %.4f ulp at %g", c.name, count, worst, at)
			if !(worst <= c.bound) {
				y := []float32{0}
				c.got(y, []float32{at})
				t.Errorf("%s(%g) = %g, want %g: %.4f ulp", c.name, at, y[0], c.want(float64(at)), worst)
			}
		}
	})
}

// TestWidthsAgree: what goes number by number has the same bits at all widths of vectors.
func TestWidthsAgree(t *testing.T) {
	available, _ := machineLevels()
	if !slices.Contains(available, levelAVX512) {
		t.Skip("NOT EXAMINED: 3 functions in 2 roundings, at both widths: this machine or build lacks AVX-512")
	}
	narrow, wide := machineKernels(levelAVX2), machineKernels(levelAVX512)
	ones := make([]float32, 1000)
	for i := range ones {
		ones[i] = 1
	}
	for _, round := range []rounding{false, true} {
		a, b := narrow.elements(round), wide.elements(round)
		for name, pair := range map[string][2]func(y, x []float32){
			"silu": {a.silu, b.silu}, "tanh": {a.tanh, b.tanh},
			"snake": {
				func(y, x []float32) { a.snake(y, x, ones[:len(x)], ones[:len(x)]) },
				func(y, x []float32) { b.snake(y, x, ones[:len(x)], ones[:len(x)]) },
			},
		} {
			got, want := make([]float32, 1000), make([]float32, 1000)
			count := everyFloat(func(x []float32) {
				pair[0](got[:len(x)], x)
				pair[1](want[:len(x)], x)
				sameBits(t, name, got[:len(x)], want[:len(x)])
			})
			t.Logf("%s, bfloat16 %v: %d numbers", name, round, count)
		}
	}
}

// weights is the exponential that softmax takes of scores up to 0.
func weights(k *kernels) func(y, x []float32) {
	return func(y, x []float32) {
		for i, v := range x {
			y[i] = 0
			if v < 0 {
				y[i] = v
			}
		}
		k.softmaxRow(y, 1, &softmaxState{})
	}
}

// TestSwiGLUOfLevels: silu as above, the products to the bit.
func TestSwiGLUOfLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		for _, round := range []rounding{false, true} {
			e := k.elements(round)
			for _, n := range vectorSizes() {
				gate, up, y := guarded[float32](t, n), guarded[float32](t, n), guarded[float32](t, n)
				copy(gate, hard(r, n))
				copy(up, hard(r, n))
				want := make([]float32, n)
				e.silu(want, gate)
				for i := range want {
					want[i] = round.of(float32(want[i] * up[i]))
				}
				e.swiGLU(y, gate, up)
				sameBits(t, fmt.Sprintf("%d numbers, bfloat16 %v", n, round), y, want)
				e.swiGLU(gate, gate, up)
				sameBits(t, "in place", gate, want)
				count += n
			}
		}
		t.Logf("%d numbers", count)
	})
}

// TestSnakeOfLevels: everything but the sine is exact, and the sine, which is nearer
// than 0.501 ulp at every level, may only here and there round to a neighbour of the
// portable one.
func TestSnakeOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		for _, round := range []rounding{false, true} {
			e, off := k.elements(round), 0
			alpha, inverse, y := make([]float32, 1000), make([]float32, 1000), make([]float32, 1000)
			for i := range alpha {
				alpha[i], inverse[i] = 1, 3
				if i%3 == 0 {
					alpha[i] = -0.7
				}
			}
			count := everyFloat(func(x []float32) {
				e.snake(y[:len(x)], x, alpha, inverse)
				for i, v := range x {
					of := func(s float32) float32 {
						s = round.of(s)
						return round.of(v + round.of(float32(inverse[i]*round.of(float32(s*s)))))
					}
					s := sin(round.of(float32(alpha[i] * v)))
					got, want := y[i], of(s)
					if got == want || got != got && want != want {
						continue
					}
					off++
					if got != of(math.Nextafter32(s, 2)) && got != of(math.Nextafter32(s, -2)) {
						t.Fatalf("bfloat16 %v: snake of %g with alpha %g is %g, want %g", round, v, alpha[i], got, want)
					}
				}
			})
			t.Logf("bfloat16 %v: %d arguments, %d of them off by the last place of the sine", round, count, off)
			if off > count/1000 {
				t.Errorf("bfloat16 %v: %d sines of %d round to a neighbour", round, off, count)
			}
		}
	})
}

// TestSnakeNeighbours: where the sines of a level and of the portable code round apart, a
// huge argument beside them must not decide which of the two it is.
func TestSnakeNeighbours(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	forLevels(t, func(t *testing.T, k kernels) {
		one, x, y, want := []float32{1}, []float32{0}, []float32{0}, []float32{0}
		found, tried := 0, 0
		for ; found < 5 && tried < 2e6; tried++ {
			x[0] = float32(r.NormFloat64() * 10)
			rounding(false).snake(y, x, one, one)
			if k.f32.snake(want, x, one, one); y[0] == want[0] {
				continue
			}
			found++
			ones := []float32{1, 1, 1}
			got := []float32{math.MaxFloat32, x[0], math.MaxFloat32}
			if k.f32.snake(got, got, ones, ones); got[1] != want[0] {
				t.Errorf("snake(%g) is %g beside a huge number, alone %g", x[0], got[1], want[0])
			}
		}
		if found == 0 {
			t.Skip("NOT EXAMINED: all sines round alike")
		}
		t.Logf("%d of %d numbers", found, tried)
	})
}

// TestSnakeHuge: a row that the loop of a level has to leave again and again, with every
// number as if it were alone.
func TestSnakeHuge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		for _, n := range vectorSizes() {
			alpha, inverse := hard(r, n), hard(r, n)
			x, y := guarded[float32](t, n), guarded[float32](t, n)
			copy(x, hard(r, n))
			for i := range x {
				switch r.IntN(20) {
				case 3:
					alpha[i] = float32(math.Inf(1))
				case 0:
					x[i] = math.MaxFloat32
				case 1:
					x[i] = float32(math.NaN())
				case 2:
					x[i] = float32(math.Inf(-1))
				}
			}
			k.f32.snake(y, x, alpha, inverse)
			want := make([]float32, n)
			rounding(false).snake(want, x, alpha, inverse)
			for i := range want {
				if e := ulps(y[i], float64(want[i])); e > 1 {
					t.Fatalf("%d numbers: number %d of %g with alpha %g is %g, want %g", n, i, x[i], alpha[i], y[i], want[i])
				}
			}
			for i := range want {
				k.f32.snake(want[i:i+1], x[i:i+1], alpha[i:i+1], inverse[i:i+1])
			}
			sameBits(t, "alone", y, want)
			copy(y, x)
			k.f32.snake(y, y, alpha, inverse)
			sameBits(t, "in place", y, want)
			count += n
		}
		t.Logf("%d numbers", count)
	})
}
