//go:build !noasm

package cpu

// tileConv is convTask on tiles. x is copied to rows of bfloat16, with zeros around
// and behind, so that a tap is nothing but a number of rows to go further. Its rows
// are the left operand, the pairs of W the right one.
//
// The sum runs over groups of channels, within a group over the taps, and within a tap
// over the channels, a step at a time. A group's part of W stays in the cache of the
// first level while the rows pass by.
type tileConv convTask

const (
	convBlocks    = 16 // of 16 rows, in a chunk
	convGroupTile = 14 // steps and taps of a group, about
)

// convolveTiles runs q.conv, of which kernel and operands are set.
func (q *queue) convolveTiles(batch int) {
	t := &q.conv
	first, last := 0, t.length // rows of x that there are to be
	outputs, taps := 0, 0
	for i := range t.phases {
		p := &t.phases[i]
		reach := (p.taps - 1) * p.rowStep
		first = min(first, p.row+min(0, reach))
		last = max(last, p.row+max(0, reach)+roundUp(p.outputs, 16))
		outputs, taps = max(outputs, p.outputs), max(taps, p.taps)
	}
	t.before, t.xRows = -first, last-first
	t.xStride = narrowStride(t.in)
	aligned(&t.narrow, batch*t.xRows*t.xStride)
	q.run((*narrowTask)(t), batch*ceilDiv(t.xRows, narrowRows), batch*t.length*t.in/vectorGain)
	t.groupSteps = max(1, convGroupTile/max(taps, 1))
	t.cut = cut{rows: ceilDiv(outputs, 16), panels: ceilDiv(t.out, convColumns), rowsPer: convBlocks, panelsPer: 1}
	q.run((*tileConv)(t), batch*len(t.phases)*t.cut.chunks(), len(t.y)*t.in*t.taps/len(t.phases)/vectorGain)
}

// narrowStride is how far rows of bfloat16 should begin from each other.
func narrowStride(width int) int {
	stride := roundUp(width, stepTerms)
	if stride%512 == 0 {
		stride += 32 // else all rows of a tile would compete for few places of the cache
	}
	return stride
}

// narrowTask copies x to rows of bfloat16.
type narrowTask convTask

const narrowRows = 64

func (t *narrowTask) chunk(i int, s *scratch) {
	parts := ceilDiv(t.xRows, narrowRows)
	entry, begin := i/parts, i%parts*narrowRows
	for r := begin; r < min(begin+narrowRows, t.xRows); r++ {
		dst := t.narrow[(entry*t.xRows+r)*t.xStride:][:t.xStride]
		row := r - t.before
		if row < 0 || row >= t.length {
			clear(dst)
			continue
		}
		s.narrow(dst[:t.in], t.x[(entry*t.length+row)*t.in:][:t.in])
		clear(dst[t.in:])
	}
}

// amxConvProduct is what the kernel is told: to multiply blocks of 16 rows of x, taps
// times further on, with 32 columns of W. Strides are in bytes. The assembly knows the
// names of the fields.
type amxConvProduct struct {
	shapes *tileShapes
	sums   *float32 // [blocks][16][32]
	resume bool     // go on from what is in sums

	x           *uint16
	xRow, xTap  int
	ahead       int // from x to the first row of the next block that no tap has met
	w           *uint16
	wStep, wTap int

	blocks, taps, steps int
}

func (t *tileConv) chunk(i int, s *scratch) {
	chunks := t.cut.chunks()
	entry, p := i/chunks/len(t.phases), &t.phases[i/chunks%len(t.phases)]
	columns := t.cut.panels
	// The columns of the same rows follow each other.
	column, block := i%chunks%columns, i%chunks/columns*t.cut.rowsPer
	rows := min(16*t.cut.rowsPer, p.outputs-16*block)
	if rows <= 0 {
		return
	}
	blocks := ceilDiv(rows, 16)
	sums := aligned(&s.tiles, blocks*16*convColumns)
	if p.taps == 0 {
		clear(sums)
	}
	var shapes tileShapes
	for tile := range 4 {
		shapes.set(tile, 16, 64)
	}
	a := amxConvProduct{
		shapes: &shapes, sums: &sums[0],
		xRow: 2 * t.xStride, xTap: 2 * p.rowStep * t.xStride,
		wStep: 2 * t.taps * convPairs, wTap: 2 * p.tapStep * convPairs,
		blocks: blocks, taps: p.taps,
	}
	a.ahead = 16*a.xRow + max(0, (p.taps-1)*a.xTap)
	x := t.narrow[(entry*t.xRows+t.before+p.row+16*block)*t.xStride:]
	steps := ceilDiv(t.in, stepTerms)
	w := t.pairs[column*steps*t.taps*convPairs:]
	for step := 0; step < steps && p.taps > 0; step += t.groupSteps {
		a.steps, a.resume = min(t.groupSteps, steps-step), step > 0
		a.x, a.w = &x[step*stepTerms], &w[(step*t.taps+p.tap)*convPairs]
		amxConv(&a)
	}
	at := (entry*t.outLength+p.first+16*block*p.stride)*t.out + column*convColumns
	wide := min(convColumns, t.out-column*convColumns)
	s.store(sums, rows, 2, t.y[at:], from(t.residual, at), from(t.bias, column*convColumns), p.stride*t.out, wide, t.round)
}
