package cpu

import "skald/host/compute"

// functionWork is how many multiply-adds take as long as exp, sin or tanh in portable
// code.
const functionWork = 30

// elementWork is the work of an element-wise operation whose portable code takes so many
// multiply-adds for a number. With vectors no operation is much slower than memory.
func (q *queue) elementWork(numbers, portable int) int {
	if q.pool.kernels.panels.there() {
		return numbers
	}
	return numbers * portable
}

// elementTask is one element-wise operation over y.
type elementTask struct {
	kind    elementKind
	y, a, b []float32
	round   rounding
}

type elementKind uint8

const (
	swiGLU elementKind = iota
	silu
	hyperbolicTangent
)

func (q *queue) SwiGLU(y, gate, up compute.Buffer) {
	q.elements("SwiGLU", swiGLU, y, gate, up)
}

func (q *queue) SiLU(y, x compute.Buffer) { q.elements("SiLU", silu, y, x, nil) }

func (q *queue) Tanh(y, x compute.Buffer) { q.elements("Tanh", hyperbolicTangent, y, x, nil) }

func (q *queue) elements(op string, kind elementKind, y, a, b compute.Buffer) {
	o := operands{op: op}
	t := &q.element
	t.kind = kind
	t.y = o.all("y", y)
	t.a, t.b = o.floats("the first input", a, len(t.y)), nil
	o.inPlace("y", t.y, "the first input", t.a)
	if b != nil {
		t.b = o.floats("the second input", b, len(t.y))
		o.inPlace("y", t.y, "the second input", t.b)
	}
	t.round = o.dtype == compute.BF16
	q.run(t, ceilDiv(len(t.y), elementChunk), q.elementWork(len(t.y), functionWork))
}

func (t *elementTask) chunk(i int, s *scratch) {
	lo, hi := i*elementChunk, min((i+1)*elementChunk, len(t.y))
	y, a, e := t.y[lo:hi], t.a[lo:hi], s.elements(t.round)
	switch t.kind {
	case swiGLU:
		e.swiGLU(y, a, t.b[lo:hi])
	case silu:
		e.silu(y, a)
	case hyperbolicTangent:
		e.tanh(y, a)
	}
}

// gateTask is one call of ValueSiLU; a chunk is some rows.
type gateTask struct {
	y, x  []float32
	n     int
	span  rowSpan
	round rounding
}

func (q *queue) ValueSiLU(y, x compute.Buffer, rows int) {
	o := operands{op: "ValueSiLU"}
	o.size("rows", rows)
	if rows == 0 {
		return
	}
	t := &q.gate
	t.y = o.all("y", y)
	if len(t.y)%rows != 0 {
		o.fail("y has %d numbers, which is not %d rows", len(t.y), rows)
	}
	t.n = len(t.y) / rows
	t.x = o.floats("x", x, 2*len(t.y))
	o.apart("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.span = spanOf(rows, t.n)
	q.run(t, t.span.chunks(), q.elementWork(len(t.y), functionWork))
}

func (t *gateTask) chunk(i int, s *scratch) {
	e := s.elements(t.round)
	for lo, hi := t.span.of(i); lo < hi; lo++ {
		value, gate := t.x[2*lo*t.n:][:t.n], t.x[(2*lo+1)*t.n:][:t.n]
		e.swiGLU(t.y[lo*t.n:(lo+1)*t.n], gate, value)
	}
}

// addTask is one call of Add; a chunk is some rows.
type addTask struct {
	y, a, b []float32
	span    rowSpan
	round   rounding
}

func (q *queue) Add(y, a, b compute.Buffer) {
	o := operands{op: "Add"}
	t := &q.add
	t.y, t.b = o.all("y", y), o.all("b", b)
	if len(t.b) == 0 || len(t.y)%len(t.b) != 0 {
		o.fail("y has %d numbers, which is not rows of b's %d", len(t.y), len(t.b))
	}
	t.a = o.floats("a", a, len(t.y))
	o.inPlace("y", t.y, "a", t.a)
	if len(t.y) != len(t.b) {
		o.apart("y", t.y, "b", t.b)
	}
	t.round = o.dtype == compute.BF16
	t.span = spanOf(len(t.y)/len(t.b), len(t.b))
	q.run(t, t.span.chunks(), len(t.y))
}

func (t *addTask) chunk(i int, s *scratch) {
	n, e := len(t.b), s.elements(t.round)
	for lo, hi := t.span.of(i); lo < hi; lo++ {
		e.add(t.y[lo*n:(lo+1)*n], t.a[lo*n:(lo+1)*n], t.b)
	}
}

// Finite is one pass of one core: it is as fast as memory.
func (q *queue) Finite(out, x compute.Buffer) {
	o := operands{op: "Finite"}
	y, v := o.ints("out", out, 1), o.all("x", x)
	if q.err == nil {
		y[0] = int32(1 + q.job.scratch.firstNotFinite(v))
	}
}

// firstNotFinite is the index of the first infinity or NaN, or -1.
func firstNotFinite(x []float32) int {
	for i, v := range x {
		if v-v != 0 {
			return i
		}
	}
	return -1
}
