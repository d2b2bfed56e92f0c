package computetest

import (
	"fmt"
	"math"
	"slices"

	"skald/host/compute"
)

// ropeTable makes cosines and sines of positions, of the type of the run.
func (s *suite) ropeTable(positions, dim int, d compute.DType) (table compute.RopeTable, cos, sin []float32) {
	if dim == 0 {
		return compute.RopeTable{}, nil, nil
	}
	half := dim / 2
	cos, sin = make([]float32, positions*half), make([]float32, positions*half)
	for i := range cos {
		angle := float64(i/half) * math.Pow(100, -float64(i%half)/float64(half))
		cos[i], sin[i] = float32(round(math.Cos(angle), d)), float32(round(math.Sin(angle), d))
	}
	return compute.RopeTable{Cos: s.buffer(d, cos), Sin: s.buffer(d, sin), Dim: dim}, cos, sin
}

// rotated is a head turned to position p.
func rotated(head []interval, cos, sin []float32, p, dim int, d compute.DType) []interval {
	y := slices.Clone(head)
	half := dim / 2
	for i := range half {
		c, s := exactly(cos[p*half+i]), exactly(sin[p*half+i])
		a, b := head[i], head[i+half]
		y[i] = a.mul(c).store(d).add(b.neg().mul(s).store(d)).store(d)
		y[i+half] = b.mul(c).store(d).add(a.mul(s).store(d)).store(d)
	}
	return y
}

// testRope turns every head of a batch in place, to the bit.
func testRope(s *suite) {
	for _, c := range []struct{ batch, length, heads, headDim, dim int }{
		{1, 1, 1, 2, 2}, {1, 5, 3, 6, 4}, {2, 17, 4, 16, 8}, {3, 7, 1, 64, 32}, {2, 65, 2, 10, 10}, {1, 3, 2, 5, 0},
	} {
		for _, d := range floats {
			s.begin()
			table, cos, sin := s.ropeTable(c.length+2, c.dim, d)
			x := s.normal(c.batch*c.length*c.heads*c.headDim, 1, d)
			b := s.buffer(d, x)
			s.queue.Rope(b, c.batch, c.length, c.heads, c.headDim, table)
			var want []interval
			for at := 0; at < len(x); at += c.headDim {
				p := at / c.headDim / c.heads % c.length
				head := intervals(c.headDim, func(i int) interval { return exactly(x[at+i]) })
				want = append(want, rotated(head, cos, sin, p, c.dim, d)...)
			}
			s.check(fmt.Sprintf("%+v %v", c, d), s.read(b), want)
		}
	}
}

// attended is softmax(q k^T scale) v, with the error of float32: the scores' error
// moves every weight by as much, relatively, and exp and the sums add theirs. Measured,
// the portable kernels stay below 0.4 of this.
func attended(q []float32, keys, values [][]float32, scale float64) []interval {
	scores, top := make([]float64, len(keys)), math.Inf(-1)
	var worst float64
	for j, k := range keys {
		t := products(q, k)
		scores[j] = t.value * scale
		top = max(top, scores[j])
		worst = max(worst, (t.interval().hi-t.value)*math.Abs(scale)+2*u*math.Abs(scores[j]))
	}
	var total float64
	for j := range scores {
		scores[j] = math.Exp(scores[j] - top)
		total += scores[j]
	}
	means := make([]sum, len(q))
	for j, v := range values {
		for i, x := range v {
			means[i].add(scores[j] / total * float64(x))
		}
	}
	return intervals(len(q), func(i int) interval {
		t := means[i]
		return within(t.value, t.size*(worst+u*(6+math.Sqrt(float64(len(keys))))))
	})
}

// testFullAttention: no mask, every batch entry for itself.
func testFullAttention(s *suite) {
	for _, c := range []struct{ batch, length, heads, headDim int }{
		{1, 1, 1, 1}, {1, 3, 2, 5}, {2, 17, 3, 16}, {2, 65, 1, 64}, {1, 130, 2, 7}, {3, 63, 2, 32}, {1, 257, 1, 10}, {1, 70, 1, 300},
	} {
		for _, d := range floats {
			for _, std := range []float64{0.5, 4} { // even weights, and few large ones
				s.begin()
				width := c.heads * c.headDim
				n := c.batch * c.length * width
				q, k, v := s.normal(n, std, d), s.normal(n, std, d), s.normal(n, 1, d)
				scale := float32(1 / math.Sqrt(float64(c.headDim)))
				o := s.empty(d, n)
				s.queue.FullAttention(o, s.buffer(d, q), s.buffer(d, k), s.buffer(d, v), c.batch, c.length, c.heads, c.headDim, scale)
				got := s.read(o)
				want := make([]interval, n)
				for e := range c.batch {
					for h := range c.heads {
						at := func(x []float32, t int) []float32 { return x[(e*c.length+t)*width+h*c.headDim:][:c.headDim] }
						var keys, values [][]float32
						for t := range c.length {
							keys, values = append(keys, at(k, t)), append(values, at(v, t))
						}
						for t := range c.length {
							for i, y := range attended(at(q, t), keys, values, float64(scale)) {
								want[(e*c.length+t)*width+h*c.headDim+i] = y.store(d)
							}
						}
					}
				}
				label := fmt.Sprintf("%+v, %v, std %v", c, d, std)
				s.check(label, got, want)
				for e := range c.batch {
					lo, hi := e*n/c.batch, (e+1)*n/c.batch
					one := s.empty(d, hi-lo)
					s.queue.FullAttention(one, s.buffer(d, q[lo:hi]), s.buffer(d, k[lo:hi]), s.buffer(d, v[lo:hi]), 1, c.length, c.heads, c.headDim, scale)
					s.same(label+", entry alone", s.read(one), got[lo:hi])
				}
			}
		}
	}
}
