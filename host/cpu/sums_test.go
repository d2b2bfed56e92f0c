package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSumsOfLevels compares with float64: the error of a sum in float32 stays below as many
// roundings as a lane adds, and those of folding.
func TestSumsOfLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		for _, n := range vectorSizes() {
			x, y := guarded[float32](t, n), guarded[float32](t, n)
			for i := range x {
				x[i], y[i] = float32(r.NormFloat64()+3), float32(r.NormFloat64())
			}
			var sum, size, squares float64
			for _, v := range x {
				sum, size = sum+float64(v), size+math.Abs(float64(v))
				d := float64(v) - 3
				squares += d * d
			}
			roundings := float64(n)/4 + 6 // of the fewest lanes
			if got := float64(k.sum(x)); math.Abs(got-sum) > roundings*0x1p-24*size {
				t.Errorf("sum of %d: %v, want %v", n, got, sum)
			}
			if got := float64(k.squares(x, 3)); math.Abs(got-squares) > roundings*0x1p-23*squares {
				t.Errorf("squares of %d: %v, want %v", n, got, squares)
			}
			before := append([]float32(nil), y...)
			k.axpy(y, 0.3, x)
			for i, v := range y {
				want := float64(before[i]) + float64(float32(0.3))*float64(x[i])
				if e := ulps(v, want); e > 1 && math.Abs(float64(v)-want) > 0x1p-23 {
					t.Fatalf("axpy of %d: number %d is %v, want %v", n, i, v, want)
				}
			}
			count += 3 * n
		}
		t.Logf("%d numbers", count)
	})
}

func TestFirstNotFiniteOfLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	inf := float32(math.Inf(1))
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		for _, n := range vectorSizes() {
			x := guarded[float32](t, n)
			copy(x, hard(r, n))
			for at := -1; at < n; at++ {
				for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
					if at >= 0 {
						x[at] = bad
						x[n-1] = bad
					}
					if got := k.firstNotFinite(x); got != at {
						t.Fatalf("%d numbers: %d, want %d", n, got, at)
					}
					count++
				}
				if at >= 0 {
					x[at], x[n-1] = math.MaxFloat32, 0
				}
			}
		}
		t.Logf("%d rows", count)
	})
}

// TestRoundOfLevels converts all upper halves with telling lower ones.
func TestRoundOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		count := 0
		lower := []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff}
		x := make([]float32, 1000)
		for first := 0; first < 1<<16*len(lower); first += len(x) {
			for i := range x {
				n := min(first+i, 1<<16*len(lower)-1)
				x[i] = math.Float32frombits(uint32(n/len(lower))<<16 | lower[n%len(lower)])
			}
			want, got := append([]float32(nil), x...), append([]float32(nil), x...)
			rounding(true).slice(want)
			k.bf16.round(got)
			sameBits(t, "round", got, want)
			bits := make([]uint16, len(x))
			k.narrow(bits, x)
			for i, b := range bits {
				got[i] = bf16Float(b)
			}
			sameBits(t, "narrow", got, want)
			count += len(x)
		}
		for _, n := range vectorSizes() {
			src, dst := guarded[float32](t, n), guarded[uint16](t, n)
			copy(src, hard(rand.New(rand.NewPCG(2, uint64(n))), n))
			want := make([]uint16, n)
			narrow(want, src)
			k.narrow(dst, src)
			if a, b := fmt.Sprint(dst), fmt.Sprint(want); a != b {
				t.Errorf("narrow of %d: %s, want %s", n, a, b)
			}
			count += n
		}
		t.Logf("%d numbers", count)
	})
}
