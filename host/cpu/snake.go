package cpu

import "skald/host/compute"

// snakeTask is one call of Snake; a chunk is some rows.
type snakeTask struct {
	y, x     []float32
	channels int
	span     rowSpan
	alpha    []float32
	inverse  []float32 // r(1/r(alpha+1e-9))
	round    rounding
}

func (q *queue) Snake(y, x compute.Buffer, alpha compute.Weight, rows int) {
	o := operands{op: "Snake"}
	o.size("rows", rows)
	t := &q.snake
	t.channels = len(o.weight("alpha", alpha).floats)
	t.alpha = o.vector("alpha", alpha, t.channels)
	t.y, t.x = o.floats("y", y, rows*t.channels), o.floats("x", x, rows*t.channels)
	o.inPlace("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.inverse = grown(&t.inverse, t.channels)
	for c, a := range t.alpha {
		t.inverse[c] = t.round.of(1 / t.round.of(a+1e-9))
	}
	t.span = spanOf(rows, t.channels)
	q.run(t, t.span.chunks(), functionWork*len(t.x))
}

func (t *snakeTask) chunk(i int, s *scratch) {
	n, e := t.channels, s.elements(t.round)
	lo, hi := t.span.of(i)
	for at := lo * n; at < hi*n; at += n {
		e.snake(t.y[at:at+n], t.x[at:at+n], t.alpha, t.inverse)
	}
}
