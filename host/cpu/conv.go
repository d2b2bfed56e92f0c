package cpu

import "skald/host/compute"

// packTaps turns a kernel into [taps][out][in]; at is where w holds a number.
func packTaps(w []float32, taps, out, in int, at func(k, o, i int) int) []float32 {
	packed := make([]float32, len(w))
	n := 0
	for k := range taps {
		for o := range out {
			for i := range in {
				packed[n] = w[at(k, o, i)]
				n++
			}
		}
	}
	return packed
}

// convTask is one call of Conv1D or ConvTranspose1D.
//
// A transposed convolution of stride s is s convolutions side by side: output u takes
// only the taps k with k = u+pad modulo s, each at input row (u+pad-k)/s. So outputs
// that are s apart, a phase, take the same taps at consecutive input rows, each tap
// one row before the last one. A convolution is a single phase.
//
// A chunk is some outputs of one phase of one batch entry: a product of two matrices,
// the rows under the taps, gathered block by block, and the taps' weights. The sum
// runs over the taps in order, and over the channels within.
type convTask struct {
	y, x, residual    []float32
	w, bias           []float32
	in, out           int
	length, outLength int
	phases            []convPhase
	parts             int // chunks of one phase
	round             rounding

	// With panels.
	panels  []float32
	taps    int
	xStride int // from one row of x to the next
	cut     cut // of one phase

	// With tiles.
	pairs         []uint16
	narrow        []uint16 // x as [batch, xRows, xStride], beginning so many rows before it
	before, xRows int
	groupSteps    int
}

// convPhase are outputs first, first+stride, ... Output m of them meets tap
// tap+j*tapStep at input row row+m+j*rowStep, for j below taps.
type convPhase struct {
	first, stride, outputs int
	tap, tapStep, taps     int
	row, rowStep           int
}

func (q *queue) Conv1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "Conv1D"}
	w := o.kernel(c, compute.UseConv)
	out, in, taps := w.shape[0], w.shape[1], w.shape[2]
	if c.Dilation < 1 {
		o.fail("Dilation is %d", c.Dilation)
	}
	length := c.Length + 2*c.Pad - c.Dilation*(taps-1)
	t := &q.conv
	t.phases = append(t.phases[:0], convPhase{stride: 1, outputs: length, tapStep: 1, taps: taps, row: -c.Pad, rowStep: c.Dilation})
	q.convolve(&o, y, x, c, w, in, out, length)
}

func (q *queue) ConvTranspose1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "ConvTranspose1D"}
	w := o.kernel(c, compute.UseConvTranspose)
	in, out, taps := w.shape[0], w.shape[1], w.shape[2]
	if c.Stride < 1 {
		o.fail("Stride is %d", c.Stride)
	}
	if c.Dilation > 1 {
		o.fail("Dilation is %d, which a transposed convolution does not have", c.Dilation)
	}
	length := (c.Length-1)*c.Stride - 2*c.Pad + taps
	t := &q.conv
	t.phases = t.phases[:0]
	for k := range c.Stride {
		p := convPhase{stride: c.Stride, tap: k, tapStep: c.Stride, rowStep: -1}
		p.first = (k - c.Pad%c.Stride + c.Stride) % c.Stride
		p.outputs = max(0, ceilDiv(length-p.first, c.Stride))
		p.taps = max(0, ceilDiv(taps-k, c.Stride))
		p.row = (p.first + c.Pad - k) / c.Stride // without rest
		t.phases = append(t.phases, p)
	}
	q.convolve(&o, y, x, c, w, in, out, length)
}

// kernel checks what the two have in common before their shapes are known.
func (o *operands) kernel(c compute.Conv, use compute.Use) *weight {
	w := o.weight("W", c.W)
	if w.use != use {
		o.fail("W was loaded for another use")
	}
	if c.Batch < 0 || c.Length <= 0 || c.Pad < 0 {
		o.fail("Batch %d, Length %d, Pad %d", c.Batch, c.Length, c.Pad)
	}
	return w
}

func (q *queue) convolve(o *operands, y, x compute.Buffer, c compute.Conv, w *weight, in, out, length int) {
	if length <= 0 {
		o.fail("an input of %d gives no output with %d taps and pad %d", c.Length, w.shape[2], c.Pad)
	}
	t := &q.conv
	t.w, t.panels, t.pairs, t.in, t.out, t.length, t.outLength = w.packed, w.panels, w.pairs, in, out, c.Length, length
	t.x, t.y = o.floats("x", x, c.Batch*c.Length*in), o.floats("y", y, c.Batch*length*out)
	t.bias = o.vector("Bias", c.Bias, out)
	t.residual = nil
	if c.Residual != nil {
		t.residual = o.floats("Residual", c.Residual, len(t.y))
		o.inPlace("y", t.y, "Residual", t.residual)
	}
	o.apart("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.taps = w.shape[2]
	if t.pairs != nil {
		if t.round {
			q.pool.kernels.convolvePairs(q, c.Batch)
			return
		}
		t.panels = panelsOfPairs(t.pairs, t.taps, out, in)
	}
	if t.panels != nil {
		q.convolvePanels(c.Batch, t.taps)
		return
	}
	t.parts = ceilDiv(ceilDiv(length, len(t.phases)), tileRows)
	q.run(t, c.Batch*len(t.phases)*t.parts, len(t.y)*in*w.shape[2]/len(t.phases))
}

func (t *convTask) chunk(i int, s *scratch) {
	entry, p, begin := i/t.parts/len(t.phases), &t.phases[i/t.parts%len(t.phases)], i%t.parts*tileRows
	n := min(tileRows, p.outputs-begin)
	if n <= 0 {
		return
	}
	x := t.x[entry*t.length*t.in:][:t.length*t.in]
	sums := grown(&s.sums, ceilDiv(t.out, 4)*n) // [out/4][n]
	clear(sums)
	tile, panel := grown(&s.a, n*kBlock), grown(&s.panel, 4*kBlock)
	for k := 0; k < p.taps*t.in; k += kBlock {
		terms := min(kBlock, p.taps*t.in-k)
		t.gatherRows(tile, x, p, begin, n, k, terms)
		for column := 0; column < t.out; column += 4 {
			w := t.gatherWeights(panel, p, column, k, terms)
			dotTile(sums[column/4*n:][:n], tile, terms, terms, &w)
		}
	}
	at := (entry*t.outLength + p.first + begin*p.stride) * t.out
	for column := 0; column < t.out; column += 4 {
		var bias []float32
		if t.bias != nil {
			bias = t.bias[column:]
		}
		storeTile(t.y, at+column, p.stride*t.out, t.out-column, sums[column/4*n:][:n], bias, t.residual, t.round)
	}
}

// gatherRows sets tile [n, terms] to terms k to k+terms of what n outputs from begin on
// have under their taps; outside of the input that is zero.
func (t *convTask) gatherRows(tile, x []float32, p *convPhase, begin, n, k, terms int) {
	for at := 0; at < terms; {
		tap, channel := (k+at)/t.in, (k+at)%t.in
		width := min(t.in-channel, terms-at)
		row := p.row + begin + tap*p.rowStep // of the first output
		for r := range n {
			dst := tile[r*terms+at:][:width]
			if row+r < 0 || row+r >= t.length {
				clear(dst)
				continue
			}
			copyShort(dst, x[(row+r)*t.in+channel:])
		}
		at += width
	}
}

// gatherWeights returns the same terms of four columns. Beyond the last column the last
// is computed again, and not stored.
func (t *convTask) gatherWeights(panel []float32, p *convPhase, column, k, terms int) (w [4][]float32) {
	for j := range w {
		w[j] = panel[j*kBlock:][:terms]
		o := min(column+j, t.out-1)
		for at := 0; at < terms; {
			tap, channel := p.tap+(k+at)/t.in*p.tapStep, (k+at)%t.in
			width := min(t.in-channel, terms-at)
			copyShort(w[j][at:at+width], t.w[(tap*t.out+o)*t.in+channel:])
			at += width
		}
	}
	return w
}

// copyShort fills dst from src, without the cost of a call for a few numbers.
func copyShort(dst, src []float32) {
	if len(dst) > 16 {
		copy(dst, src)
		return
	}
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = src[i]
	}
}
