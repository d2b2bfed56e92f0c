//go:build !noasm

package cpu

// amxMany multiplies many rows. A strip, 32 rows of W, is copied to tiles some steps
// at a time, and these meet all panels of x that one part has.
//
// Sizes are for caches of 48 KB and 2 MB: the tiles, 16 KB, stay in the first level,
// and for a group of steps the part of x, 1 MB, in the second. When there are several
// groups, the sums of a chunk's strips wait in the second level, too. Each part reads
// all of W once.
type amxMany struct {
	task   *linearTask
	x      *pairs
	parts  int // of x
	panels int // in a part, the last may have fewer
	strips int // in a chunk, the last may have fewer
	ahead  int // how many chunks later a worker probably takes its next one
	around bool
	shapes tileShapes
}

const (
	stripRows  = 32
	tileSteps  = 8
	groupSteps = 64
	partPanels = 16
	manyStrips = 16
)

// aroundBytes is how large a result is written past the caches: nothing of it would
// still be there when it is read.
const aroundBytes = 4 << 20

func (m *amxMany) set(x *pairs, t *linearTask, workers int) (chunks int) {
	m.task, m.x, m.ahead = t, x, workers
	m.parts = ceilDiv(x.panels(), partPanels)
	m.panels = ceilDiv(x.panels(), m.parts)
	m.around = 4*t.rows*t.columns() > aroundBytes
	m.strips = max(1, min(m.parts*t.columns()/(stripRows*4*workers), manyStrips))
	for tile := range 4 {
		m.shapes.set(tile, 16, 64)
	}
	return t.cut(func(p *product) int { return m.parts * m.groups(p) })
}

// groups is how many chunks of strips p has.
func (m *amxMany) groups(p *product) int { return ceilDiv(p.n, m.strips*stripRows) }

// place returns where chunk i begins: row of W, panel of x.
func (m *amxMany) place(i int) (p *product, row, panel int) {
	p, i = m.task.of(i)
	groups := m.groups(p)
	return p, i % groups * m.strips * stripRows, i / groups * m.panels
}

// amxStripProduct is what the kernel is told: to multiply a strip of W with panels of
// x, in some steps, and meanwhile to fetch two rows of W for each panel. Strides are
// in bytes. The assembly knows the names of the fields.
type amxStripProduct struct {
	shapes *tileShapes
	sums   *float32 // [panels][32 rows of W][16 rows of x]
	resume bool     // go on from what is in sums

	w      *uint16 // packed
	x      *uint16
	xPanel int
	blocks int // panels
	steps  int

	next    *uint16 // the first of the rows of W to fetch
	nextRow int
}

func (m *amxMany) chunk(i int, s *scratch) {
	p, first, panel := m.place(i)
	after, afterFirst, _ := m.place(min(i+m.ahead, m.task.tiles-1))
	x, k := m.x, m.x.k
	last := min(first+m.strips*stripRows, p.n)
	panels := min(m.panels, x.panels()-panel)
	tiles := aligned(&s.packed, stripRows*tileSteps*stepTerms)
	size := panels * stripRows * 16
	sums := aligned(&s.tiles, m.strips*size)
	a := amxStripProduct{
		shapes: &m.shapes, w: &tiles[0],
		xPanel: 2 * x.size, blocks: panels, nextRow: 2 * k,
	}
	for group := 0; group < x.steps; group += groupSteps {
		groupEnd := min(group+groupSteps, x.steps)
		for row := first; row < last; row += stripRows {
			strip := sums
			if x.steps > groupSteps {
				strip = sums[(row-first)/stripRows*size:]
			}
			a.sums = &strip[0]
			for step := group; step < groupEnd; step += tileSteps {
				a.steps, a.resume = min(tileSteps, groupEnd-step), step > 0
				tail := stepTerms
				if step+a.steps == x.steps {
					tail = x.tail
				}
				packStrip(a.w, &p.w.bits[row*k+step*stepTerms], 2*k, min(stripRows, p.n-row), a.steps, tail)
				switch {
				case step+tileSteps < groupEnd:
					a.next = &p.w.bits[row*k+(step+tileSteps)*stepTerms]
				case row+stripRows < last:
					a.next = &p.w.bits[(row+stripRows)*k+group*stepTerms]
				case groupEnd < x.steps:
					a.next = &p.w.bits[first*k+groupEnd*stepTerms]
				default:
					a.next = &after.w.bits[afterFirst*k]
				}
				a.x = x.at(panel, step)
				amxStrip(&a)
			}
			if groupEnd == x.steps {
				m.finish(p, strip, row, panel, panels)
			}
		}
	}
}

// finish stores the results of a strip.
func (m *amxMany) finish(p *product, sums []float32, column, panel, panels int) {
	for b := range panels {
		for c := column; c < min(column+stripRows, p.n); c += 16 {
			m.task.finishTile(p, sums[(2*b+(c-column)/16)*256:], m.x, panel+b, c, min(16, p.n-c), m.around)
		}
	}
}
