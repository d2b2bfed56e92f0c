package cpu

import "skald/host/compute"

// packConvTranspose turns [in][out][taps] into [taps][out][in].
func packConvTranspose(w []float32, in, out, taps int) []float32 {
	packed := make([]float32, len(w))
	for i := range in {
		for o := range out {
			for k := range taps {
				packed[(k*out+o)*in+i] = w[(i*out+o)*taps+k]
			}
		}
	}
	return packed
}

// transposeTask is one call of ConvTranspose1D. Output u takes the taps k with
// k = u+pad modulo stride, each at input row (u+pad-k)/stride. Outputs of one
// remainder, the phase, take the same taps at consecutive input rows: a chunk is some
// outputs of one phase of one batch entry. The sum runs over the taps in order.
type transposeTask struct {
	y, x, residual    []float32
	w, bias           []float32
	length, outLength int
	in, out, taps     int
	stride, pad       int
	parts             int // chunks of one phase
	round             rounding
}

func (q *queue) ConvTranspose1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "ConvTranspose1D"}
	w := o.convolution(c, compute.UseConvTranspose)
	t := &q.transpose
	t.w, t.in, t.out, t.taps = w.packed, w.shape[0], w.shape[1], w.shape[2]
	t.length, t.stride, t.pad = c.Length, c.Stride, c.Pad
	if t.stride < 1 {
		o.fail("Stride is %d", t.stride)
	}
	if c.Dilation > 1 {
		o.fail("Dilation is %d, which a transposed convolution does not have", c.Dilation)
	}
	t.outLength = (c.Length-1)*c.Stride - 2*c.Pad + t.taps
	if t.outLength <= 0 {
		o.fail("an input of %d gives no output with %d taps, stride %d and pad %d", c.Length, t.taps, c.Stride, c.Pad)
	}
	t.x, t.y = o.floats("x", x, c.Batch*c.Length*t.in), o.floats("y", y, c.Batch*t.outLength*t.out)
	t.bias = o.vector("Bias", c.Bias, t.out)
	t.residual = nil
	if c.Residual != nil {
		t.residual = o.floats("Residual", c.Residual, len(t.y))
		o.inPlace("y", t.y, "Residual", t.residual)
	}
	o.apart("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.parts = ceilDiv(ceilDiv(t.outLength, t.stride), convRows)
	q.run(t, c.Batch*t.stride*t.parts)
}

func (t *transposeTask) chunk(i int, s *scratch) {
	entry, phase, part := i/t.parts/t.stride, i/t.parts%t.stride, i%t.parts
	// The outputs of this phase are u = first + stride*m.
	first := phase - t.pad%t.stride
	if first < 0 {
		first += t.stride
	}
	count := ceilDiv(t.outLength-first, t.stride)
	begin := part * convRows
	n := min(convRows, count-begin)
	if n <= 0 {
		return
	}
	x := t.x[entry*t.length*t.in:][:t.length*t.in]
	sums := grown(&s.sums, n)
	for column := 0; column < t.out; column += 4 {
		clear(sums)
		for k := phase; k < t.taps; k += t.stride {
			shift := (first+t.pad-k)/t.stride + begin // exact: k = first+pad modulo stride
			lo, hi := max(0, -shift), min(n, t.length-shift)
			if lo < hi {
				addTap(sums[lo:hi], x[(shift+lo)*t.in:], t.w[k*t.out*t.in:], column, t.in, t.out)
			}
		}
		base := entry*t.outLength + first + begin*t.stride
		for j := range min(4, t.out-column) {
			var bias float32
			if t.bias != nil {
				bias = t.bias[column+j]
			}
			for r := range sums {
				at := (base+r*t.stride)*t.out + column + j
				v := t.round.of(sums[r][j] + bias)
				if t.residual != nil {
					v = t.round.of(t.residual[at] + v)
				}
				t.y[at] = v
			}
		}
	}
}
