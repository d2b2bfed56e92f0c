package computetest

import (
	"fmt"

	"skald/host/compute"
)

// convCase is the shape of one convolution.
type convCase struct {
	batch, length, in, out, taps, stride, dilation, pad int
}

// testConv1D compares with the definition, position by position.
func testConv1D(s *suite) {
	for _, c := range []convCase{
		{1, 1, 1, 1, 1, 0, 1, 0}, {1, 5, 3, 7, 3, 0, 1, 1}, {2, 31, 5, 6, 7, 0, 1, 3}, {2, 31, 5, 6, 7, 0, 3, 9}, {1, 65, 17, 3, 7, 0, 9, 27},
		{1, 3, 4, 5, 7, 0, 9, 27}, {1, 130, 8, 1, 7, 0, 1, 3}, {3, 17, 63, 65, 1, 0, 1, 0}, {1, 20, 300, 4, 3, 0, 1, 1}, {1, 70, 2, 9, 3, 0, 2, 0}, {2, 9, 6, 5, 2, 0, 1, 4},
	} {
		s.convolution(c, compute.UseConv, s.queue.Conv1D,
			c.length+2*c.pad-c.dilation*(c.taps-1), []int{c.out, c.in, c.taps},
			func(t, o, i, k int) (row, weight int) {
				return t + k*c.dilation - c.pad, (o*c.in+i)*c.taps + k
			})
	}
}

// testConvTranspose1D has even and odd strides, and taps that the stride does not
// divide.
func testConvTranspose1D(s *suite) {
	for _, c := range []convCase{
		{1, 1, 1, 1, 1, 1, 0, 0}, {2, 9, 5, 3, 4, 2, 0, 1}, {2, 9, 5, 3, 6, 3, 0, 2}, {1, 9, 5, 3, 10, 5, 0, 3}, {1, 9, 5, 3, 16, 8, 0, 4},
		{3, 17, 65, 7, 5, 2, 0, 0}, {1, 70, 3, 9, 7, 3, 0, 4}, {1, 3, 4, 2, 2, 5, 0, 0}, {1, 5, 300, 2, 4, 2, 0, 1}, {1, 4, 3, 2, 3, 1, 0, 2}, {2, 150, 6, 5, 8, 4, 0, 2},
	} {
		s.convolution(c, compute.UseConvTranspose, s.queue.ConvTranspose1D,
			(c.length-1)*c.stride-2*c.pad+c.taps, []int{c.in, c.out, c.taps},
			func(t, o, i, k int) (row, weight int) {
				row = t + c.pad - k
				if row%c.stride != 0 {
					return -1, 0
				}
				return row / c.stride, (i*c.out+o)*c.taps + k
			})
	}
}

// convolution checks one shape in all its forms. at gives the row of x and the number
// of the weight that meet in output t, o through input channel i and tap k.
func (s *suite) convolution(c convCase, use compute.Use, run func(y, x compute.Buffer, c compute.Conv), outLength int, shape []int, at func(t, o, i, k int) (row, weight int)) {
	for _, d := range floats {
		for _, form := range []struct{ bias, residual, inPlace bool }{{}, {bias: true}, {true, true, false}, {true, true, true}} {
			s.begin()
			x, w := s.normal(c.batch*c.length*c.in, 1, d), s.normal(c.in*c.out*c.taps, 1, d)
			conv := compute.Conv{Batch: c.batch, Length: c.length, W: s.weight(use, d, w, shape...), Stride: c.stride, Dilation: c.dilation, Pad: c.pad}
			in := s.buffer(d, x)
			residual := s.normal(c.batch*outLength*c.out, 3, d)
			out := s.empty(d, len(residual))
			bias := make([]float32, c.out)
			if form.bias {
				bias = s.normal(c.out, 2, d)
				conv.Bias = s.weight(compute.UseVector, d, bias, c.out)
			}
			if form.residual {
				conv.Residual = s.buffer(d, residual)
			}
			if form.inPlace {
				out = conv.Residual
			}
			run(out, in, conv)
			got := s.read(out)
			want := intervals(len(got), func(n int) interval {
				e, t, o := n/c.out/outLength, n/c.out%outLength, n%c.out
				var total sum
				total.add(float64(bias[o]))
				for k := range c.taps {
					for i := range c.in {
						if row, weight := at(t, o, i, k); row >= 0 && row < c.length {
							total.add(float64(w[weight]) * float64(x[(e*c.length+row)*c.in+i]))
						}
					}
				}
				y := total.interval().store(d)
				if form.residual {
					y = exactly(residual[n]).add(y).store(d)
				}
				return y
			})
			label := fmt.Sprintf("%+v, %v, %+v", c, d, form)
			s.check(label, got, want)
			if form.residual {
				continue
			}
			for e := range c.batch {
				n := len(got) / c.batch
				one := s.empty(d, n)
				alone := conv
				alone.Batch = 1
				run(one, in.Slice(e*len(x)/c.batch, (e+1)*len(x)/c.batch), alone)
				s.same(label+", entry alone", s.read(one), got[e*n:(e+1)*n])
			}
		}
	}
}
