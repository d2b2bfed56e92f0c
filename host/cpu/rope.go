package cpu

import "skald/host/compute"

// rotation is compute.RopeTable unwrapped; half is 0 for none.
type rotation struct {
	cos, sin []float32
	half     int
}

func (o *operands) rotation(r compute.RopeTable, headDim int) rotation {
	if r.Dim == 0 {
		return rotation{}
	}
	if r.Dim < 0 || r.Dim%2 != 0 || r.Dim > headDim {
		o.fail("rope turns %d numbers of a head of %d, want an even number of them", r.Dim, headDim)
	}
	n := o.buffer("Cos", r.Cos).Len()
	return rotation{cos: o.floats("Cos", r.Cos, n), sin: o.floats("Sin", r.Sin, n), half: r.Dim / 2}
}

// positions is how many the table holds.
func (r *rotation) positions() int { return len(r.cos) / r.half }

// turn rotates one head at position p.
func (r *rotation) turn(head []float32, p int, e *elements) {
	if n := r.half; n > 0 {
		e.turn(head[:n], head[n:2*n], r.cos[p*n:(p+1)*n], r.sin[p*n:(p+1)*n])
	}
}

// ropeTask is one call of Rope; a chunk is some rows.
type ropeTask struct {
	x                      []float32
	length, heads, headDim int
	rotation               rotation
	span                   rowSpan
	round                  rounding
}

func (q *queue) Rope(x compute.Buffer, batch, length, heads, headDim int, table compute.RopeTable) {
	o := operands{op: "Rope"}
	o.size("batch", batch)
	o.size("length", length)
	o.size("heads", heads)
	o.size("headDim", headDim)
	t := &q.rope
	t.length, t.heads, t.headDim = length, heads, headDim
	t.x = o.floats("x", x, batch*length*heads*headDim)
	t.rotation = o.rotation(table, headDim)
	t.round = o.dtype == compute.BF16
	if t.rotation.half == 0 {
		return
	}
	if t.rotation.positions() < length {
		o.fail("the table has %d positions, want %d", t.rotation.positions(), length)
	}
	t.span = spanOf(batch*length, heads*headDim)
	q.run(t, t.span.chunks(), q.elementWork(len(t.x), 4))
}

func (t *ropeTask) chunk(i int, s *scratch) {
	e := s.elements(t.round)
	lo, hi := t.span.of(i)
	for at := lo * t.heads; at < hi*t.heads; at++ {
		t.rotation.turn(t.x[at*t.headDim:(at+1)*t.headDim], at/t.heads%t.length, e)
	}
}
