package computetest

import (
	"fmt"

	"skald/host/compute"
)

// testLinear: groups, biases, residuals apart and in place, strides; each row alone
// gives the bytes it gives among others.
func testLinear(s *suite) {
	for _, c := range []struct{ rows, k, n int }{
		{1, 1, 1}, {1, 3, 5}, {2, 7, 3}, {3, 17, 17}, {5, 63, 65}, {1, 65, 130}, {2, 256, 64}, {4, 257, 63},
		{17, 128, 33}, {7, 600, 7}, {65, 33, 70}, {130, 300, 9}, {63, 1030, 66}, {1, 4100, 20}, {33, 4100, 3},
	} {
		for _, d := range floats {
			for _, form := range []struct{ bias, residual, inPlace, stride bool }{
				{}, {bias: true}, {residual: true}, {bias: true, residual: true, inPlace: true}, {stride: true}, {bias: true, residual: true, inPlace: true, stride: true},
			} {
				s.begin()
				x := s.normal(c.rows*c.k, 1, d)
				xBuffer := s.buffer(d, x)
				var products []linearCase
				var group []compute.Linear
				for g := range 1 + s.cases%3 {
					p := s.linearCase(c.rows, c.k, c.n+g, d, form.bias, form.residual, form.inPlace, form.stride)
					products, group = append(products, p), append(group, p.Linear)
				}
				s.queue.Linear(xBuffer, c.rows, group...)
				label := fmt.Sprintf("%d rows, K %d, N %d, %v, %+v", c.rows, c.k, c.n, d, form)
				for _, p := range products {
					got := s.read(p.Y)
					s.check(label, got, p.want(x, c.rows, c.k, d))
					s.alone(label, xBuffer, c.rows, c.k, d, p, got)
				}
			}
		}
	}
}

// linearCase is a product with its inputs, on the host and on the device.
type linearCase struct {
	compute.Linear
	n, stride         int
	w, bias, residual []float32
}

func (s *suite) linearCase(rows, k, n int, d compute.DType, bias, residual, inPlace, stride bool) linearCase {
	p := linearCase{n: n, stride: n, w: s.normal(n*k, 1, d)}
	p.W = s.weight(compute.UseLinear, d, p.w, n, k)
	if stride {
		p.stride = n + 3
		p.Stride = p.stride
	}
	before := s.normal(rows*p.stride, 4, d) // the gaps between rows must stay
	p.Y = s.buffer(d, before)
	if bias {
		p.bias = s.normal(n, 3, d)
		p.Bias = s.weight(compute.UseVector, d, p.bias, n)
	}
	p.residual = before
	switch {
	case inPlace:
		p.Residual = p.Y
	case residual:
		p.residual = s.normal(rows*p.stride, 4, d)
		p.Residual = s.buffer(d, p.residual)
	}
	if p.stride != n {
		p.residual = before // of the gaps
	}
	return p
}

func (p *linearCase) want(x []float32, rows, k int, d compute.DType) []interval {
	return intervals(rows*p.stride, func(i int) interval {
		row, column := i/p.stride, i%p.stride
		if column >= p.n {
			return exactly(p.residual[i])
		}
		t := products(x[row*k:(row+1)*k], p.w[column*k:(column+1)*k])
		if p.bias != nil {
			t.add(float64(p.bias[column]))
		}
		y := t.interval().store(d)
		if p.Residual != nil {
			y = exactly(p.residual[i]).add(y).store(d)
		}
		return y
	})
}

// alone computes single rows and pairs of rows again and compares the bytes.
func (s *suite) alone(label string, x compute.Buffer, rows, k int, d compute.DType, p linearCase, got []float32) {
	for _, take := range []int{1, 2, 3} {
		for row := 0; row+take <= rows; row += max(take, rows/5) {
			lo, hi := row*p.stride, (row+take)*p.stride
			one := compute.Linear{Y: s.empty(d, hi-lo), Stride: p.Stride, W: p.W, Bias: p.Bias}
			s.queue.Zero(one.Y)
			if p.Residual != nil {
				one.Residual = s.buffer(d, p.residual[lo:hi])
			}
			s.queue.Linear(x.Slice(row*k, (row+take)*k), take, one)
			for r, v := 0, s.read(one.Y); r < take; r++ {
				s.same(label+", rows alone", v[r*p.stride:r*p.stride+p.n], got[lo+r*p.stride:lo+r*p.stride+p.n])
			}
		}
	}
}

// testEmbedSum: one to eight parts, bases, a stride wider than the parts.
func testEmbedSum(s *suite) {
	for _, width := range []int{1, 3, 17, 65, 128} {
		for _, parts := range []int{1, 2, 3, 8} {
			for _, d := range floats {
				s.begin()
				const tableRows, rows = 11, 7
				stride := parts + s.cases%3
				values := make([][]float32, parts)
				table := make([]compute.TablePart, parts)
				for j := range table {
					values[j] = s.normal(tableRows*width, 1, d)
					table[j] = compute.TablePart{Table: s.weight(compute.UseTable, d, values[j], tableRows, width), Base: j % 4}
				}
				ids := make([]int32, (rows-1)*stride+parts)
				for i := range ids {
					ids[i] = 1 << 30 // of no part
				}
				for i := range rows {
					for j := range parts {
						ids[i*stride+j] = int32(s.rand.IntN(tableRows - j%4))
					}
				}
				scale := float32(0.35355339)
				y := s.empty(d, rows*width)
				s.queue.EmbedSum(y, rows, s.ints(ids...), stride, table, scale)
				s.check(fmt.Sprintf("width %d, %d parts, %v", width, parts, d), s.read(y), intervals(rows*width, func(i int) interval {
					term := func(j int) float32 {
						row := int(ids[i/width*stride+j]) + table[j].Base
						return values[j][row*width+i%width]
					}
					if parts == 1 {
						return exactly(term(0))
					}
					inner := term(1)
					for j := 2; j < parts; j++ {
						inner += term(j)
					}
					outer := round(float64(term(0))+round(float64(inner), d), d)
					return exactly(outer * float64(scale)).store(d)
				}))
			}
		}
	}
}
