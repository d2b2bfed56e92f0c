package cpu

import "skald/host/compute"

// snakeTask is one call of Snake; a chunk is some rows.
type snakeTask struct {
	y, x     []float32
	channels int
	span     rowSpan
	alpha    []float32 // of all numbers of a chunk
	inverse  []float32 // r(1/r(alpha+1e-9)), likewise
	round    rounding
}

func (q *queue) Snake(y, x compute.Buffer, alpha compute.Weight, rows int) {
	o := operands{op: "Snake"}
	o.size("rows", rows)
	t := &q.snake
	t.channels = len(o.weight("alpha", alpha).floats)
	a := o.vector("alpha", alpha, t.channels)
	t.y, t.x = o.floats("y", y, rows*t.channels), o.floats("x", x, rows*t.channels)
	o.inPlace("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.span = spanOf(rows, t.channels)
	// Rows may be short: what a chunk needs is laid out once.
	n := min(t.span.each, rows) * t.channels
	t.alpha, t.inverse = grown(&t.alpha, n), grown(&t.inverse, n)
	for i := range n {
		if i < t.channels {
			t.alpha[i], t.inverse[i] = a[i], t.round.of(1/t.round.of(a[i]+1e-9))
		} else {
			t.alpha[i], t.inverse[i] = t.alpha[i-t.channels], t.inverse[i-t.channels]
		}
	}
	q.run(t, t.span.chunks(), q.elementWork(len(t.x), functionWork))
}

func (t *snakeTask) chunk(i int, s *scratch) {
	lo, hi := t.span.of(i)
	y, x := t.y[lo*t.channels:hi*t.channels], t.x[lo*t.channels:hi*t.channels]
	s.elements(t.round).snake(y, x, t.alpha[:len(x)], t.inverse[:len(x)])
}
