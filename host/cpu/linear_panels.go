package cpu

// vectorGain is about how many multiply-adds a vector kernel does in the time of one of
// the portable code.
const vectorGain = 16

// cut says how a product of rows with panels becomes chunks: rowsPer x panelsPer each,
// those of the same panels one after the other.
type cut struct {
	rows, panels       int
	rowsPer, panelsPer int
}

func (c *cut) chunks() int {
	return ceilDiv(c.rows, c.rowsPer) * ceilDiv(c.panels, c.panelsPer)
}

// of returns the rows and panels of chunk i.
func (c *cut) of(i int) (row, rows, panel, panels int) {
	parts := ceilDiv(c.rows, c.rowsPer)
	row, panel = i%parts*c.rowsPer, i/parts*c.panelsPer
	return row, min(c.rowsPer, c.rows-row), panel, min(c.panelsPer, c.panels-panel)
}

// cut chooses chunks for sums of k products. The panels of a chunk should stay in the
// second level cache while the rows pass by, and there should be a few chunks for
// each thread, which take what is left whenever they are ready. Where panels are not
// packed yet, a chunk has many rows, so that packing does not count.
func (q *queue) cut(rows, panels, k int, packed bool) cut {
	const cache = 1 << 20
	most := q.pool.kernels.panels.tiles.rows()
	fewest := most
	if !packed {
		fewest = 12 * most
	}
	c := cut{rows: rows, panels: panels, rowsPer: rows, panelsPer: min(max(cache/(4*panelColumns*k), 2), 8)}
	for c.chunks() < 4*(q.pool.helpers+1) {
		switch {
		case c.rowsPer > 2*fewest:
			c.rowsPer = ceilDiv(ceilDiv(c.rowsPer, 2), most) * most
		case c.panelsPer > 2:
			c.panelsPer /= 2
		default:
			return c
		}
	}
	return c
}

// A product of at most fewRows rows with weights that are not packed makes its panels
// fewK numbers at a time, to use them while they are in the cache. Where K is longer
// than longK, so many numbers go through all rows of a chunk before the next: a tile's
// rows of x then stay in the second level cache, and no kernel runs for so long that
// the garbage collector, which cannot interrupt it, has to wait.
const (
	fewRows = 32
	fewK    = 1024
	longK   = 2048
)

// panelLinear is linearTask with the kernels for panels.
type panelLinear linearTask

func (t *panelLinear) chunk(i int, s *scratch) {
	p, i := (*linearTask)(t).of(i)
	row, rows, panel, panels := p.cut.of(i)
	if rows <= fewRows || t.k > longK {
		t.inParts(p, row, rows, panel, panels, s)
	} else {
		t.atOnce(p, row, rows, panel, panels, s)
	}
}

// atOnce computes one height of tiles after the other, each with the whole of K.
func (t *panelLinear) atOnce(p *product, row, rows, panel, panels int, s *scratch) {
	w, stride := t.weights(p, panel, panels, 0, t.k, s)
	s.tile = tile{taps: 1, k: t.k}
	for end := row + rows; row < end; {
		n := s.panels.tiles.height(end - row)
		sums := grown(&s.rows, n*panels*panelColumns)
		s.multiply(&s.tile, t.x[row*t.stride:], t.stride, w, stride, n, panels, sums)
		t.store(sums, p, row, n, panel, panels, s)
		row += n
	}
}

// inParts computes all rows with one part of K after the other.
func (t *panelLinear) inParts(p *product, row, rows, panel, panels int, s *scratch) {
	part := longK
	if p.w.panels == nil && rows <= fewRows {
		part = fewK
	}
	sums := grown(&s.rows, rows*panels*panelColumns)
	for k := 0; k < t.k; k += part {
		n := min(part, t.k-k)
		w, stride := t.weights(p, panel, panels, k, n, s)
		s.tile = tile{taps: 1, k: n, resume: k > 0}
		s.multiply(&s.tile, t.x[row*t.stride+k:], t.stride, w, stride, rows, panels, sums)
	}
	t.store(sums, p, row, rows, panel, panels, s)
}

// weights returns numbers k to k+n of some panels and how far apart the panels are.
func (t *panelLinear) weights(p *product, panel, panels, k, n int, s *scratch) (w []float32, stride int) {
	if p.w.panels != nil {
		return p.w.panels[(panel*t.k+k)*panelColumns:], t.k * panelColumns
	}
	stride = n * panelColumns
	w = grown(&s.panel, panels*stride)
	for j := range panels {
		s.packPanel(w[j*stride:][:stride], p.w, (panel+j)*panelColumns, k, n)
	}
	return w, stride
}

func (t *panelLinear) store(sums []float32, p *product, row, rows, panel, panels int, s *scratch) {
	column, at := panel*panelColumns, row*p.stride+panel*panelColumns
	s.store(sums, rows, panels, p.y[at:], from(p.residual, at), from(p.bias, column), p.stride, min(panels*panelColumns, p.n-column), t.round)
}

// from returns v[at:], or nil for nil.
func from(v []float32, at int) []float32 {
	if v == nil {
		return nil
	}
	return v[at:]
}
