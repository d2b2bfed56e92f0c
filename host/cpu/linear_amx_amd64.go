//go:build !noasm

package cpu

import "unsafe"

// amxLinear computes Linear on tiles. W is the left operand, in tiles of 16 of its
// rows, x the right one, in pairs. Every result is one sum that takes step after step
// in order, in all of the ways there are, and so does not depend on which one computes
// it. The instruction takes numbers below the normal ones for zero.
//
// Where x is float32, each number is split into three bfloat16 terms, which loses
// nothing. Their sums are added at the end, the smaller ones first.
type amxLinear struct {
	x    pairs
	few  amxFew
	many amxMany
	tall amxTall
}

// amxFewRows is up to how many rows W is read straight from where it lies, from memory
// for the first 32 rows, and for the others from the cache of the second level.
const amxFewRows = 64

func (a *amxLinear) linear(q *queue, t *linearTask, work int) bool {
	switch {
	case a.tall.suits(t):
		q.run(&a.tall, a.tall.set(t), work)
	case bool(t.round):
		a.run(q, t, 1, work)
	default:
		a.run(q, t, 3, work)
	}
	return true
}

// run computes t with so many terms for each number of x.
func (a *amxLinear) run(q *queue, t *linearTask, terms, work int) {
	workers := q.pool.helpers + 1
	each := 16 / terms
	few := terms*t.rows <= amxFewRows && t.k%2 == 0 // a pair must not end in the next row
	if few {
		each = min(t.rows, each)
		a.x.set(t, terms, each, terms*each)
	} else {
		a.x.set(t, terms, each, 16)
	}
	q.run(&a.x, a.x.panels(), a.x.work())
	work *= terms
	if few {
		q.run(&a.few, a.few.set(&a.x, t, workers), work)
	} else {
		q.run(&a.many, a.many.set(&a.x, t, workers), work)
	}
}

// tileShapes is what LDTILECFG reads.
type tileShapes [64]byte

// set gives a tile rows of some bytes.
func (s *tileShapes) set(tile, rows, bytes int) {
	s[0] = 1 // the palette
	s[16+2*tile], s[48+tile] = byte(bytes), byte(rows)
}

// finishTile stores the result of a panel of x and some rows of W, which are its rows.
func (t *linearTask) finishTile(p *product, sums []float32, x *pairs, panel, column, columns int, around bool) {
	f := t.finish(p, sums, 16, panel*x.each, column, x.height(panel), columns)
	f.around = around && columns == 16 && p.stride%16 == 0 && uintptr(unsafe.Pointer(f.y))%64 == 0
	if x.terms == 1 {
		finishColumns(&f)
	} else {
		finishTerms(&f)
	}
}

// amxFew multiplies few rows: its speed is that of the memory W lies in. A chunk is
// some blocks of 16 rows of W.
type amxFew struct {
	task *linearTask
	x    *pairs
	rows int // of W in a chunk
}

// amxFewBytes is how much of W a chunk reads at most, in some 50 microseconds.
const amxFewBytes = 512 << 10

func (f *amxFew) set(x *pairs, t *linearTask, workers int) (chunks int) {
	f.task, f.x = t, x
	f.rows = 16 * max(1, min(amxFewBytes/(16*2*t.k), t.columns()/(16*4*workers), 4))
	return t.cut(func(p *product) int { return ceilDiv(p.n, f.rows) })
}

func (f *amxFew) chunk(i int, s *scratch) {
	p, part := f.task.of(i)
	first := part * f.rows
	last := min(first+f.rows, p.n)
	whole := last - (last-first)%16
	for panel := 0; panel < f.x.panels(); panel += 2 {
		if first < whole {
			f.blocks(p, first, 16, (whole-first)/16, panel, s)
		}
		if whole < last {
			f.blocks(p, whole, last-whole, 1, panel, s)
		}
	}
}

// amxFewProduct is what the kernels are told: to multiply blocks of 16 rows of W with
// panels of x, in steps and if there is a tail one more, whose tiles have their own
// shapes. Strides are in bytes. The assembly knows the names of the fields, and these
// tiles: 0 and 1 the sums of each panel; 4 rows of W, 6 and 2 pairs; 5, and 7 and 3
// the same in the last step.
type amxFewProduct struct {
	shapes *tileShapes
	sums   *float32 // [blocks][panels][16 rows of W][16 rows of x]

	w      *uint16
	wRow   int
	blocks int

	x             *uint16
	xPanel, width int // from one panel, and one pair of k, to the next

	steps, tail int
}

// blocks computes blocks of W, of up to 16 rows from row on, with one panel or two.
func (f *amxFew) blocks(p *product, row, rows, blocks, panel int, s *scratch) {
	x := f.x
	panels := min(2, x.panels()-panel)
	sums := aligned(&s.tiles, blocks*panels*256)
	var shapes tileShapes
	m := amxFewProduct{
		shapes: &shapes, sums: &sums[0],
		w: &p.w.bits[row*x.k], wRow: 2 * x.k, blocks: blocks,
		x: x.at(panel, 0), xPanel: 2 * x.size, width: 4 * x.width,
		steps: x.steps,
	}
	if x.tail < stepTerms {
		m.steps, m.tail = x.steps-1, x.tail
		shapes.set(5, rows, 2*x.tail)
		shapes.set(7, x.tail/2, m.width)
		shapes.set(3, x.tail/2, m.width)
	}
	shapes.set(0, rows, m.width)
	shapes.set(1, rows, m.width)
	shapes.set(4, rows, 2*stepTerms)
	shapes.set(6, stepTerms/2, m.width)
	shapes.set(2, stepTerms/2, m.width)
	if panels == 1 {
		amxFew1(&m)
	} else {
		amxFew2(&m)
	}
	for b := range blocks {
		for j := range panels {
			f.task.finishTile(p, sums[(b*panels+j)*256:], x, panel+j, row+16*b, rows, false)
		}
	}
}
