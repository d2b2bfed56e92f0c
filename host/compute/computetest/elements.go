package computetest

import (
	"fmt"
	"math"

	"skald/host/compute"
)

// rmsNormed is RMSNorm of one row.
func rmsNormed(x, w []float32, eps float32, d compute.DType) []interval {
	var t sum
	for _, v := range x {
		t.add(float64(v) * float64(v))
	}
	n := float64(len(x))
	mean := interval{t.interval().lo / n, t.interval().hi / n}
	return intervals(len(x), func(i int) interval {
		factor := interval{1 / math.Sqrt(mean.hi+float64(eps)), 1 / math.Sqrt(mean.lo+float64(eps))}
		return exactly(x[i]).mul(factor.widen(4)).store(d).mul(exactly(w[i])).store(d)
	})
}

var normShapes = []struct{ rows, n int }{{1, 1}, {3, 3}, {5, 7}, {2, 17}, {7, 63}, {4, 65}, {3, 257}, {2, 4096}, {65, 32}}

func testRMSNorm(s *suite) {
	for _, c := range normShapes {
		for _, d := range floats {
			for _, std := range []float64{1e-4, 1, 300} {
				s.begin()
				x, w := s.normal(c.rows*c.n, std, d), s.normal(c.n, 1, d)
				weight := s.weight(compute.UseVector, d, w, c.n)
				in, out := s.buffer(d, x), s.empty(d, len(x))
				s.queue.RMSNorm(out, in, weight, c.rows, 1e-6)
				got := s.read(out)
				var want []interval
				for i := 0; i < len(x); i += c.n {
					want = append(want, rmsNormed(x[i:i+c.n], w, 1e-6, d)...)
				}
				label := fmt.Sprintf("%+v, %v", c, d)
				s.check(label, got, want)
				s.rowsAlone(label, c.rows, in, got, func(y, x compute.Buffer, rows int) { s.queue.RMSNorm(y, x, weight, rows, 1e-6) })
				s.queue.RMSNorm(in, in, weight, c.rows, 1e-6)
				s.same(label+", in place", s.read(in), got)
			}
		}
	}
}

func testLayerNorm(s *suite) {
	for _, c := range normShapes {
		for _, d := range floats {
			for _, shift := range []float64{0, 10} {
				s.begin()
				x, w, b := s.normal(c.rows*c.n, 2, d), s.normal(c.n, 1, d), s.normal(c.n, 1, d)
				for i := range x {
					x[i] = float32(round(float64(x[i])+shift, d))
				}
				weight, bias := s.weight(compute.UseVector, d, w, c.n), s.weight(compute.UseVector, d, b, c.n)
				in, out := s.buffer(d, x), s.empty(d, len(x))
				const eps = 1e-5
				s.queue.LayerNorm(out, in, weight, bias, c.rows, eps)
				got := s.read(out)
				var want []interval
				for at := 0; at < len(x); at += c.n {
					row := x[at : at+c.n]
					var mean, variance sum
					for _, v := range row {
						mean.add(float64(v))
					}
					n := float64(c.n)
					centre := mean.value / n
					off := (mean.interval().hi-mean.value)/n + u*math.Abs(centre)
					for _, v := range row {
						variance.add((float64(v) - centre) * (float64(v) - centre))
					}
					// A shifted mean adds its square to the variance.
					spread := within(variance.value/n, (variance.interval().hi-variance.value)/n+off*off+4*u*variance.value/n+2*off*u*math.Abs(centre))
					factor := interval{1 / math.Sqrt(spread.hi+eps), 1 / math.Sqrt(max(0, spread.lo)+eps)}.widen(4)
					for i, v := range row {
						y := within(float64(v)-centre, off+u*math.Abs(float64(v)-centre)).mul(factor).widen(1).mul(exactly(w[i])).widen(1)
						want = append(want, y.add(exactly(b[i])).store(d))
					}
				}
				label := fmt.Sprintf("%+v, %v, mean %v", c, d, shift)
				s.check(label, got, want)
				s.rowsAlone(label, c.rows, in, got, func(y, x compute.Buffer, rows int) {
					s.queue.LayerNorm(y, x, weight, bias, rows, eps)
				})
				s.queue.LayerNorm(in, in, weight, bias, c.rows, eps)
				s.same(label+", in place", s.read(in), got)
			}
		}
	}
}

// rowsAlone runs an operation row by row and compares the bytes.
func (s *suite) rowsAlone(label string, rows int, x compute.Buffer, got []float32, f func(y, x compute.Buffer, rows int)) {
	s.Helper()
	in, out := x.Len()/rows, len(got)/rows
	y := s.empty(x.DType(), out)
	for r := range rows {
		f(y, x.Slice(r*in, (r+1)*in), 1)
		s.same(label+", row alone", s.read(y), got[r*out:(r+1)*out])
	}
}

// functionErr is how many float32 roundings exp, tanh and what is made of them may
// be wrong by: 4 leaves room for the 2 ulp of a GPU's own functions.
const functionErr = 4

func silu(x float32) interval {
	v := float64(x)
	return exactly(v / (1 + math.Exp(-v))).widen(functionErr).add(within(0, 2e-38)) // subnormal results may be flushed
}

// arguments are numbers over the whole range of a function and around its edges.
func (s *suite) arguments(n int, d compute.DType) []float32 {
	v := s.normal(n, 3, d)
	for i := range v {
		switch i % 4 {
		case 1:
			v[i] = float32(round(float64(v[i])*12, d))
		case 2:
			v[i] = float32(round(math.Ldexp(float64(v[i]), -s.rand.IntN(60)), d))
		}
	}
	edges := []float64{0, 1, -1, 20, -20, 88, -88, 89, -89, 104, -104, 1000, -1000, 1e30, -1e30, 1e-30, -1e-30, 0x1p-24, 0.3, -0.3, 9, -9}
	for i, e := range edges {
		if 2*i < n {
			v[2*i] = float32(round(e, d))
		}
	}
	return v
}

var elementCounts = []int{1, 3, 5, 17, 63, 65, 1000, 4097, 20011}

func testSiLU(s *suite) {
	s.unary(s.queue.SiLU, silu)
}

func testTanh(s *suite) {
	s.unary(s.queue.Tanh, func(x float32) interval {
		return exactly(math.Tanh(float64(x))).widen(functionErr).add(within(0, 2e-38))
	})
}

// unary checks y = r(f(x)), apart and in place.
func (s *suite) unary(op func(y, x compute.Buffer), f func(x float32) interval) {
	for _, n := range elementCounts {
		for _, d := range floats {
			s.begin()
			x := s.arguments(n, d)
			in, out := s.buffer(d, x), s.empty(d, n)
			op(out, in)
			got := s.read(out)
			s.check(fmt.Sprintf("%d of %v", n, d), got, intervals(n, func(i int) interval { return f(x[i]).store(d) }))
			op(in, in)
			s.same("in place", s.read(in), got)
		}
	}
}

func testSwiGLU(s *suite) {
	for _, n := range elementCounts {
		for _, d := range floats {
			s.begin()
			gate, up := s.arguments(n, d), s.normal(n, 2, d)
			a, b, y := s.buffer(d, gate), s.buffer(d, up), s.empty(d, n)
			s.queue.SwiGLU(y, a, b)
			got := s.read(y)
			s.check(fmt.Sprintf("%d of %v", n, d), got, intervals(n, func(i int) interval {
				return silu(gate[i]).store(d).mul(exactly(up[i])).store(d)
			}))
			s.queue.SwiGLU(b, a, b)
			s.same("over up", s.read(b), got)
			s.queue.Upload(b, up)
			s.queue.SwiGLU(a, a, b)
			s.same("over gate", s.read(a), got)
		}
	}
}

func testValueSiLU(s *suite) {
	for _, c := range normShapes {
		for _, d := range floats {
			s.begin()
			x := s.arguments(2*c.rows*c.n, d)
			in, out := s.buffer(d, x), s.empty(d, c.rows*c.n)
			s.queue.ValueSiLU(out, in, c.rows)
			got := s.read(out)
			label := fmt.Sprintf("%+v, %v", c, d)
			s.check(label, got, intervals(c.rows*c.n, func(i int) interval {
				row := x[i/c.n*2*c.n:]
				return silu(row[c.n+i%c.n]).store(d).mul(exactly(row[i%c.n])).store(d)
			}))
			s.rowsAlone(label, c.rows, in, got, s.queue.ValueSiLU)
		}
	}
}

func testAdd(s *suite) {
	for _, c := range normShapes {
		for _, d := range floats {
			s.begin()
			a, b := s.normal(c.rows*c.n, 2, d), s.normal(c.n, 1, d)
			in, row, y := s.buffer(d, a), s.buffer(d, b), s.empty(d, len(a))
			s.queue.Add(y, in, row)
			want := intervals(len(a), func(i int) interval { return exactly(a[i]).add(exactly(b[i%c.n])).store(d) })
			s.check(fmt.Sprintf("%+v, %v", c, d), s.read(y), want)
			s.queue.Add(in, in, row)
			s.check("in place", s.read(in), want)
		}
	}
}

// testSnake: coefficients of every kind, and arguments far beyond any reduction in
// float32.
func testSnake(s *suite) {
	for _, c := range normShapes {
		for _, d := range floats {
			for _, size := range []float64{1, 1e3, 1e8, 1e30} {
				s.begin()
				x, alpha := s.normal(c.rows*c.n, size, d), s.normal(c.n, 2, d)
				for i, a := range []float64{1, 0, -0.7, 1e-6, 1e-9, 300} {
					if i < c.n {
						alpha[i] = float32(round(a, d))
					}
				}
				weight := s.weight(compute.UseVector, d, alpha, c.n)
				in, out := s.buffer(d, x), s.empty(d, len(x))
				s.queue.Snake(out, in, weight, c.rows)
				got := s.read(out)
				label := fmt.Sprintf("%+v, %v, size %g", c, d, size)
				s.check(label, got, intervals(len(x), func(i int) interval {
					a := float64(alpha[i%c.n])
					inverse := round(1/round(a+float64(float32(1e-9)), d), d)
					angle := round(a*float64(x[i]), d)
					sine := exactly(math.Sin(angle)).widen(2).store(d)
					square := sine.mul(sine)
					if square.lo = max(0, square.lo); sine.lo*sine.hi < 0 {
						square.lo = 0
					}
					return exactly(x[i]).add(exactly(inverse).mul(square.store(d)).store(d)).store(d)
				}))
				s.rowsAlone(label, c.rows, in, got, func(y, x compute.Buffer, rows int) { s.queue.Snake(y, x, weight, rows) })
				s.queue.Snake(in, in, weight, c.rows)
				s.same(label+", in place", s.read(in), got)
			}
		}
	}
}

func testFinite(s *suite) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, n := range []int{1, 2, 17, 65, 5000, 100_003} {
		for _, d := range floats {
			x := s.normal(n, 1, d)
			x[n/2] = float32(round(1e38, d))
			out, b := s.ints(9, 9), s.buffer(d, x)
			s.begin()
			s.queue.Finite(out, b)
			s.sameInts("all finite", s.readInts(out), []int32{0, 9})
			for _, bad := range []float32{inf, -inf, nan} {
				for _, at := range []int{0, n / 3, n - 1} {
					s.begin()
					y := append([]float32(nil), x...)
					y[n-1], y[at] = nan, bad
					s.queue.Upload(b, y)
					s.queue.Finite(out, b)
					s.sameInts(fmt.Sprintf("%v at %d of %d", bad, at, n), s.readInts(out), []int32{int32(at + 1), 9})
				}
			}
		}
	}
}
