package cpu

// packTapPanels turns a kernel into panels [out/16][taps][in][16]: those of a product
// whose K are the taps and the channels within; at is where w holds a number.
func packTapPanels(w []float32, taps, out, in int, at func(k, o, i int) int) []float32 {
	panels := make([]float32, roundUp(out, panelColumns)*taps*in)
	for o := range out {
		column := panels[o/panelColumns*taps*in*panelColumns+o%panelColumns:]
		for k := range taps {
			for i := range in {
				column[(k*in+i)*panelColumns] = w[at(k, o, i)]
			}
		}
	}
	return panels
}

// panelConv is convTask with the kernels for panels. Rows of x are read where they are:
// for each tap, a tile begins so many rows further. The sum runs over the taps in
// order, and over the channels within. A tap that meets the zeros outside of the input
// is left out, which changes no sum.
type panelConv convTask

// convolvePanels runs q.conv, of which kernel and operands are set.
func (q *queue) convolvePanels(batch, taps int) {
	t := &q.conv
	t.x, t.xStride = q.spread(t.x, batch*t.length, t.in)
	t.cut = q.cut(ceilDiv(t.outLength, len(t.phases)), ceilDiv(t.out, panelColumns), ceilDiv(taps, len(t.phases))*t.in, true)
	q.run((*panelConv)(t), batch*len(t.phases)*t.cut.chunks(), len(t.y)*t.in*taps/len(t.phases)/vectorGain)
}

func (t *panelConv) chunk(i int, s *scratch) {
	parts := t.cut.chunks()
	entry, p := i/parts/len(t.phases), &t.phases[i/parts%len(t.phases)]
	begin, n, panel, panels := t.cut.of(i % parts)
	end := min(begin+n, p.outputs)
	x := t.x[entry*t.length*t.xStride:][:t.length*t.xStride]
	for begin < end {
		n, lo, hi := p.run(begin, end, t.length)
		t.rows(x, p, entry, begin, n, lo, hi, panel, panels, s)
		begin += n
	}
}

// rows computes n outputs from begin on, which all meet the input with taps lo to hi.
func (t *panelConv) rows(x []float32, p *convPhase, entry, begin, n, lo, hi, panel, panels int, s *scratch) {
	first := panel*t.taps + p.tap + lo*p.tapStep
	s.tile = tile{
		taps: hi - lo, k: t.in,
		xNext: 4 * (p.rowStep*t.xStride - t.in),
		wNext: 4 * (p.tapStep - 1) * t.in * panelColumns,
	}
	column := panel * panelColumns
	columns := min(panels*panelColumns, t.out-column)
	for end := begin + n; begin < end; {
		high := s.panels.tiles.height(end - begin)
		sums := grown(&s.rows, high*panels*panelColumns)
		if lo < hi {
			s.multiply(&s.tile, x[(p.row+begin+lo*p.rowStep)*t.xStride:], t.xStride,
				t.panels[first*t.in*panelColumns:], t.taps*t.in*panelColumns, high, panels, sums)
		} else {
			clear(sums)
		}
		at := (entry*t.outLength+p.first+begin*p.stride)*t.out + column
		s.store(sums, high, panels, t.y[at:], from(t.residual, at), from(t.bias, column), p.stride*t.out, columns, t.round)
		begin += high
	}
}

// meets returns which taps of output m meet an input of that length: lo to hi, none
// if they are equal.
func (p *convPhase) meets(m, length int) (lo, hi int) {
	for lo < p.taps && !p.inside(m, lo, length) {
		lo++
	}
	for hi = lo; hi < p.taps && p.inside(m, hi, length); hi++ {
	}
	return lo, hi
}

// inside tells whether tap j of output m meets an input of that length.
func (p *convPhase) inside(m, j, length int) bool {
	row := p.row + m + j*p.rowStep
	return row >= 0 && row < length
}

// run returns how many outputs from begin on, to end at most, meet the input with the
// same taps, and these.
func (p *convPhase) run(begin, end, length int) (n, lo, hi int) {
	lo, hi = p.meets(begin, length)
	if hi-lo == p.taps && p.taps > 0 {
		// All taps, until the one with the last row leaves the input.
		last := p.row + max(0, (p.taps-1)*p.rowStep)
		return min(end, length-last) - begin, lo, hi
	}
	for n = 1; begin+n < end; n++ {
		if l, h := p.meets(begin+n, length); l != lo || h != hi {
			break
		}
	}
	return n, lo, hi
}
