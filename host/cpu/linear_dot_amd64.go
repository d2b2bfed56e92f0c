//go:build !noasm

package cpu

// dotLinear computes Linear with VDPBF16PS, which adds the products of a pair to a
// sum. Rows of W stand in panels as those of x do. A lane of a vector is a row of W;
// every result is one sum that takes pair after pair in order, whatever the tile it is
// computed in. The instruction takes numbers below the normal ones for zero.
type dotLinear struct {
	task    *linearTask
	x       pairs
	kernel  dotKernel
	columns int // of a product in a chunk
	panels  int // of x that are multiplied before the next columns
}

// dotKernel is how so many rows of x are multiplied: with one panel of W, or several.
type dotKernel struct {
	rows  int
	one   func(*dotProduct)
	wide  func(*dotProduct)
	width int // panels of W that wide takes
}

// dotKernelFor chooses for a number of rows: up to 8 so many as there are, roughly;
// more than 16 in tiles as tall as there are registers for.
func dotKernelFor(rows int) dotKernel {
	switch {
	case rows <= 2:
		return dotKernel{2, dot2x16, dot2x64, 4}
	case rows <= 4:
		return dotKernel{4, dot4x16, dot4x64, 4}
	case rows <= 16:
		return dotKernel{8, dot8x16, dot8x48, 3}
	}
	return dotKernel{14, dot14x16, dot14x32, 2}
}

const (
	dotChunkBytes = 256 << 10 // of W in a chunk
	dotPartBytes  = 448 << 10 // of x
)

func (d *dotLinear) linear(q *queue, t *linearTask, work int) bool {
	if !t.round {
		return false // three terms would take longer than float32
	}
	d.run(q, t, work)
	return true
}

func (d *dotLinear) run(q *queue, t *linearTask, work int) {
	d.task, d.kernel = t, dotKernelFor(t.rows)
	d.x.set(t, 1, d.kernel.rows, d.kernel.rows)
	q.run(&d.x, d.x.panels(), d.x.work())
	width := panelColumns * d.kernel.width
	d.columns = width * max(1, min(dotChunkBytes/(2*t.k*width), t.columns()/(width*4*(q.pool.helpers+1)), 4))
	d.panels = max(dotPartBytes/(2*d.x.size), 1)
	q.run(d, t.cut(func(p *product) int { return ceilDiv(p.n, d.columns) }), work)
}

func (d *dotLinear) chunk(i int, s *scratch) {
	p, part := d.task.of(i)
	first := part * d.columns
	panels := ceilDiv(min(d.columns, p.n-first), panelColumns)
	w, size := p.w.pairs, d.x.steps*stepTerms*panelColumns
	if w != nil {
		w = w[first/panelColumns*size:]
	} else {
		w = aligned(&s.packed, panels*size)
		for j := range panels {
			p.w.packPairs(w[j*size:], first/panelColumns+j)
		}
	}
	for x := 0; x < d.x.panels(); x += d.panels {
		last := min(x+d.panels, d.x.panels())
		for j := 0; j < panels; {
			width, kernel := d.kernel.width, d.kernel.wide
			if panels-j < width {
				width, kernel = 1, d.kernel.one
			}
			d.tiles(p, w[j*size:], first+j*panelColumns, width, kernel, x, last, s)
			j += width
		}
	}
}

// tiles multiplies panels of W with those of x from first to last.
func (d *dotLinear) tiles(p *product, w []uint16, column, panels int, kernel func(*dotProduct), first, last int, s *scratch) {
	x, width := &d.x, panels*panelColumns
	sums := aligned(&s.tiles, x.width*width)
	s.dot = dotProduct{
		sums: &sums[0], w: &w[0],
		wPanel: 2 * x.steps * stepTerms * panelColumns, pairs: x.steps * stepTerms / 2,
	}
	for panel := first; panel < last; panel++ {
		s.dot.x = x.at(panel, 0)
		kernel(&s.dot)
		s.last = d.task.finish(p, sums, width, panel*x.width, column, x.height(panel), min(width, p.n-column))
		s.kernels.panels.finish(&s.last)
	}
}

// packPairs writes panel i of the pairs of w.
func (w *weight) packPairs(dst []uint16, i int) {
	n, k := w.shape[0], w.shape[1]
	row := i * panelColumns
	steps, tail := stepsOf(k)
	packPairsBF16(&dst[0], &w.bits[row*k], 2*k, min(panelColumns, n-row), steps, tail, 4*panelColumns)
}

// packAllPairs makes the pairs of w.
func packAllPairs(w *weight) []uint16 {
	n, k := w.shape[0], w.shape[1]
	steps, _ := stepsOf(k)
	size := steps * stepTerms * panelColumns
	var pairs []uint16
	aligned(&pairs, int(pairCount(w.shape)))
	for i := range ceilDiv(n, panelColumns) {
		w.packPairs(pairs[i*size:], i)
	}
	return pairs
}
