package cpu

import "skald/host/compute"

// packConv turns [out][in][taps] into [taps][out][in]: for one tap, a convolution is
// a product of rows of x with rows of the weight.
func packConv(w []float32, out, in, taps int) []float32 {
	packed := make([]float32, len(w))
	for o := range out {
		for i := range in {
			for k := range taps {
				packed[(k*out+o)*in+i] = w[(o*in+i)*taps+k]
			}
		}
	}
	return packed
}

// convTask is one call of Conv1D; a chunk is some positions of one batch entry. The
// sum runs over the taps in order, and over the channels within.
type convTask struct {
	y, x, residual    []float32
	w, bias           []float32
	length, outLength int
	in, out, taps     int
	dilation, pad     int
	parts             int // chunks of one batch entry
	round             rounding
}

const convRows = 64

func (q *queue) Conv1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "Conv1D"}
	w := o.convolution(c, compute.UseConv)
	t := &q.conv
	t.w, t.out, t.in, t.taps = w.packed, w.shape[0], w.shape[1], w.shape[2]
	t.length, t.dilation, t.pad = c.Length, c.Dilation, c.Pad
	if t.dilation < 1 {
		o.fail("Dilation is %d", t.dilation)
	}
	t.outLength = c.Length + 2*c.Pad - c.Dilation*(t.taps-1)
	if t.outLength <= 0 {
		o.fail("an input of %d is too short for %d taps with dilation %d and pad %d", c.Length, t.taps, c.Dilation, c.Pad)
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
	t.parts = ceilDiv(t.outLength, convRows)
	q.run(t, c.Batch*t.parts)
}

func (o *operands) convolution(c compute.Conv, use compute.Use) *weight {
	w := o.weight("W", c.W)
	if w.use != use {
		o.fail("W was loaded for another use")
	}
	if c.Batch < 0 || c.Length <= 0 || c.Pad < 0 {
		o.fail("Batch %d, Length %d, Pad %d", c.Batch, c.Length, c.Pad)
	}
	return w
}

func (t *convTask) chunk(i int, s *scratch) {
	entry, begin := i/t.parts, i%t.parts*convRows
	n := min(convRows, t.outLength-begin)
	x := t.x[entry*t.length*t.in:][:t.length*t.in]
	sums := grown(&s.sums, n)
	for column := 0; column < t.out; column += 4 {
		clear(sums)
		for k := range t.taps {
			shift := begin + k*t.dilation - t.pad // input row of the chunk's first output
			lo, hi := max(0, -shift), min(n, t.length-shift)
			if lo < hi {
				addTap(sums[lo:hi], x[(shift+lo)*t.in:], t.w[k*t.out*t.in:], column, t.in, t.out)
			}
		}
		at := (entry*t.outLength+begin)*t.out + column
		for j := range min(4, t.out-column) {
			var bias float32
			if t.bias != nil {
				bias = t.bias[column+j]
			}
			for r := range sums {
				at := at + r*t.out + j
				v := t.round.of(sums[r][j] + bias)
				if t.residual != nil {
					v = t.round.of(t.residual[at] + v)
				}
				t.y[at] = v
			}
		}
	}
}

// addTap adds, to each of the sums, the product of one row of x [len(sums), in] with
// four columns of a tap w [out, in].
func addTap(sums [][4]float32, x, w []float32, column, in, out int) {
	var at [4]int
	for j := range at {
		at[j] = min(column+j, out-1) * in
	}
	for k := 0; k < in; k += kBlock {
		n := min(kBlock, in-k)
		w0, w1, w2, w3 := w[at[0]+k:][:n], w[at[1]+k:][:n], w[at[2]+k:][:n], w[at[3]+k:][:n]
		for r := range sums {
			dot1x4(&sums[r], x[r*in+k:][:n], w0, w1, w2, w3)
		}
	}
}
