//go:build !noasm

package cpu

// pairs are rows of x as instructions for bfloat16 want them: two neighbours of a row
// are one operand, and those of some rows, a panel, stand side by side,
//
//	[panels][k/2][width][2] bfloat16.
//
// Numbers that are no bfloat16 numbers are split into three whose sum they are: such a
// row makes three rows of a panel.
type pairs struct {
	data  []uint16
	terms int // 1 or 3
	each  int // rows of x in a panel
	width int // rows of a panel, at most 16
	size  int // numbers from one panel to the next

	x           []float32 // [rows, k]
	rows, k     int
	steps, tail int
}

// set prepares the pairs of t's x for q.run, with panels of some rows of x.
func (p *pairs) set(t *linearTask, terms, each, width int) {
	p.x, p.rows, p.k = t.x, t.rows, t.k
	p.terms, p.each, p.width = terms, each, width
	p.steps, p.tail = stepsOf(p.k)
	p.size = p.steps*stepTerms*width + 2*16 // packPairs writes 16 rows at the end, too
	aligned(&p.data, p.panels()*p.size)
}

func (p *pairs) panels() int { return ceilDiv(p.rows, p.each) }

// height is how many rows of x a panel really has.
func (p *pairs) height(panel int) int { return min(p.each, p.rows-panel*p.each) }

// work is for q.run.
func (p *pairs) work() int { return p.terms * p.rows * p.k / vectorGain }

// at returns the pairs of a panel from a step on.
func (p *pairs) at(panel, step int) *uint16 {
	return &p.data[panel*p.size+step*stepTerms*p.width]
}

// chunk makes one panel.
func (p *pairs) chunk(panel int, _ *scratch) {
	dst, src, rows := p.at(panel, 0), &p.x[panel*p.each*p.k], p.height(panel)
	if p.terms == 1 {
		packPairs(dst, src, 4*p.k, rows, p.steps, p.tail, 4*p.width)
	} else {
		packTerms(dst, src, 4*p.k, rows, p.steps, p.tail, 4*p.width)
	}
}

// finish is the last step of a product for a tile whose first result is at (row,
// column).
func (t *linearTask) finish(p *product, sums []float32, width, row, column, rows, columns int) finish {
	at := row*p.stride + column
	f := finish{
		sums: &sums[0], sumsRow: 4 * width,
		y: &p.y[at], yRow: 4 * p.stride,
		rows: rows, columns: columns, round: bool(t.round),
	}
	if p.bias != nil {
		f.bias = &p.bias[column]
	}
	if p.residual != nil {
		f.residual = &p.residual[at]
	}
	return f
}
