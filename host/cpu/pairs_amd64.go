//go:build !noasm

package cpu

// pairs are rows of x as instructions for bfloat16 want them: two neighbours of a row
// are one operand, and those of some rows, a panel, stand side by side,
//
//	[rows/width][k/2][width][2] bfloat16.
type pairs struct {
	data  []uint16
	width int // rows of a panel, at most 16
	size  int // numbers from one panel to the next

	x           []float32 // [rows, k]
	rows, k     int
	steps, tail int
}

// set prepares pairs for q.run.
func (p *pairs) set(x []float32, rows, k, width int) {
	p.x, p.rows, p.k, p.width = x, rows, k, width
	p.steps, p.tail = stepsOf(k)
	p.size = p.steps*stepTerms*width + 2*16 // packPairs writes 16 rows at the end, too
	aligned(&p.data, p.panels()*p.size)
}

func (p *pairs) panels() int { return ceilDiv(p.rows, p.width) }

// height is how many rows a panel really has.
func (p *pairs) height(panel int) int { return min(p.width, p.rows-panel*p.width) }

// at returns the pairs of a panel from a step on.
func (p *pairs) at(panel, step int) *uint16 {
	return &p.data[panel*p.size+step*stepTerms*p.width]
}

// chunk makes one panel.
func (p *pairs) chunk(panel int, _ *scratch) {
	packPairs(p.at(panel, 0), &p.x[panel*p.width*p.k], 4*p.k, p.height(panel), p.steps, p.tail, 4*p.width)
}

// finish is the last step of a product for a tile whose first result is at (row, column).
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
