//go:build !noasm

package cpu

// amxTall multiplies very many rows with a small W. Here W is turned instead of x and
// the result: the rows of x are the left operand, and W, as a kernel of one tap, the
// right one. A chunk is some rows of x with all of W. Its sums take the same steps in
// the same order as those of amxMany.
type amxTall struct {
	task        *linearTask
	pairs       []uint16 // of all products, one after the other
	stride      int      // of the rows of x, as bfloat16
	steps, tail int
	shapes      tileShapes
}

// From tallRows rows on and up to a size of tallBytes of W, which is to stay in the
// cache of the second level, that is faster.
const (
	tallRows  = 512
	tallBytes = 1 << 20
	tallChunk = 256
)

func (a *amxTall) suits(t *linearTask) bool {
	return bool(t.round) && t.rows >= tallRows && 2*t.columns()*t.k <= tallBytes
}

// set turns W.
func (a *amxTall) set(t *linearTask) (chunks int) {
	a.task, a.stride = t, narrowStride(t.k)
	a.steps, a.tail = stepsOf(t.k)
	columns := 0
	for i := range t.products {
		columns += ceilDiv(t.products[i].n, convColumns)
	}
	pairs := aligned(&a.pairs, columns*a.steps*convPairs)
	for i := range t.products {
		p := &t.products[i]
		for row := 0; row < p.n; row += 16 {
			for step := range a.steps {
				tail := stepTerms
				if step == a.steps-1 {
					tail = a.tail
				}
				dst := pairs[(row/convColumns*a.steps+step)*convPairs+row%convColumns*stepTerms:]
				packPairsBF16(&dst[0], &p.w.bits[row*t.k+step*stepTerms], 2*t.k, min(16, p.n-row), 1, tail, 4*16)
			}
		}
		pairs = pairs[ceilDiv(p.n, convColumns)*a.steps*convPairs:]
	}
	for tile := range 4 {
		a.shapes.set(tile, 16, 64)
	}
	return ceilDiv(t.rows, tallChunk)
}

func (a *amxTall) chunk(i int, s *scratch) {
	t := a.task
	first := i * tallChunk
	rows := min(tallChunk, t.rows-first)
	blocks := ceilDiv(rows, 16)
	x := aligned(&s.packed, blocks*16*a.stride)
	for r := range rows {
		row := x[r*a.stride:][:a.stride]
		s.narrow(row[:t.k], t.x[(first+r)*t.k:][:t.k])
		clear(row[t.k:])
	}
	sums := aligned(&s.tiles, blocks*16*convColumns)
	m := amxConvProduct{
		shapes: &a.shapes, sums: &sums[0],
		xRow: 2 * a.stride, ahead: 16 * 2 * a.stride,
		wStep: 2 * convPairs, blocks: blocks, taps: 1,
	}
	pairs := a.pairs
	for i := range t.products {
		p := &t.products[i]
		for column := 0; column < p.n; column += convColumns {
			for step := 0; step < a.steps; step += convGroupTile {
				m.steps, m.resume = min(convGroupTile, a.steps-step), step > 0
				m.x, m.w = &x[step*stepTerms], &pairs[step*convPairs]
				amxConv(&m)
			}
			at := first*p.stride + column
			s.store(sums, rows, 2, p.y[at:], from(p.residual, at), from(p.bias, column), p.stride, min(convColumns, p.n-column), t.round)
			pairs = pairs[a.steps*convPairs:]
		}
	}
}
