package cpu

import "skald/host/compute"

// flowTask is one call of MixLayers, NearestRows or SplitChannels, whose chunks are
// some rows, or of Blend or EulerStep, whose chunks are elementChunk numbers.
type flowTask struct {
	kind    flowKind
	y, a, b []float32
	rows, n int
	weights []float32
	s, t    float32 // the operation's two numbers
	span    rowSpan // of the kinds that go by rows
	round   rounding
}

type flowKind uint8

const (
	mixLayers flowKind = iota
	nearestRows
	splitChannels
	blend
	eulerStep
)

func (q *queue) MixLayers(y, x compute.Buffer, rows, n int, weights []float32, scale float32) {
	o := operands{op: "MixLayers"}
	o.size("rows", rows)
	o.size("n", n)
	if len(weights) == 0 {
		o.fail("no weights")
	}
	t := &q.flow
	t.kind, t.n, t.s = mixLayers, n, scale
	t.weights = append(t.weights[:0], weights...)
	t.y, t.a = o.floats("y", y, rows*n), o.floats("x", x, rows*n*len(weights))
	o.apart("y", t.y, "x", t.a)
	t.round = o.dtype == compute.BF16
	q.runRows(t, rows)
}

func (q *queue) NearestRows(y compute.Buffer, outRows int, x compute.Buffer, rows, n int) {
	o := operands{op: "NearestRows"}
	o.size("outRows", outRows)
	o.size("n", n)
	if rows <= 0 {
		o.fail("rows is %d", rows)
	}
	t := &q.flow
	t.kind, t.n, t.rows = nearestRows, n, rows
	t.s = float32(rows) / float32(outRows)
	t.y, t.a = o.floats("y", y, outRows*n), o.floats("x", x, rows*n)
	o.apart("y", t.y, "x", t.a)
	q.runRows(t, outRows)
}

func (q *queue) SplitChannels(y, x compute.Buffer, rows, n, parts int) {
	o := operands{op: "SplitChannels"}
	o.size("rows", rows)
	o.size("n", n)
	if parts <= 0 || n == 0 || n%parts != 0 {
		o.fail("%d channels cannot be split in %d parts", n, parts)
	}
	t := &q.flow
	t.kind, t.n, t.rows = splitChannels, n/parts, rows
	t.y, t.a = o.floats("y", y, rows*n), o.floats("x", x, rows*n)
	o.apart("y", t.y, "x", t.a)
	q.runRows(t, rows)
}

func (q *queue) Blend(x, noise, carry compute.Buffer, noiseWeight, time float32) {
	o := operands{op: "Blend"}
	t := &q.flow
	t.kind, t.s, t.t = blend, noiseWeight, time
	t.b = o.all("carry", carry)
	t.y, t.a = o.floats("x", x, len(t.b)), o.floats("noise", noise, len(t.b))
	o.inPlace("x", t.y, "noise", t.a)
	o.inPlace("x", t.y, "carry", t.b)
	t.round = o.dtype == compute.BF16
	q.run(t, ceilDiv(len(t.y), elementChunk), q.elementWork(len(t.y), 4))
}

func (q *queue) EulerStep(x, vc, vu compute.Buffer, guidance, dt float32) {
	o := operands{op: "EulerStep"}
	t := &q.flow
	t.kind, t.s, t.t = eulerStep, guidance, dt
	t.y = o.all("x", x)
	t.a, t.b = o.floats("vc", vc, len(t.y)), nil
	o.apart("x", t.y, "vc", t.a)
	if vu != nil {
		t.b = o.floats("vu", vu, len(t.y))
		o.apart("x", t.y, "vu", t.b)
	}
	t.round = o.dtype == compute.BF16
	q.run(t, ceilDiv(len(t.y), elementChunk), q.elementWork(len(t.y), 4))
}

// runRows runs an operation whose chunks are rows.
func (q *queue) runRows(t *flowTask, rows int) {
	t.span = spanOf(rows, len(t.a)/max(1, rows))
	q.run(t, t.span.chunks(), len(t.a))
}

func (t *flowTask) chunk(i int, s *scratch) {
	switch t.kind {
	case mixLayers, nearestRows, splitChannels:
		for lo, hi := t.span.of(i); lo < hi; lo++ {
			t.row(lo, s)
		}
	default:
		t.numbers(i, s)
	}
}

func (t *flowTask) row(i int, s *scratch) {
	n := t.n
	switch t.kind {
	case mixLayers:
		t.mix(t.y[i*n:(i+1)*n], t.a[i*n*len(t.weights):], s)
	case nearestRows:
		row := min(int(float32(float32(i)*t.s)), t.rows-1)
		copy(t.y[i*n:(i+1)*n], t.a[row*n:])
	case splitChannels:
		parts := len(t.y) / (t.rows * n)
		for p := range parts {
			copy(t.y[(p*t.rows+i)*n:][:n], t.a[(i*parts+p)*n:])
		}
	}
}

func (t *flowTask) numbers(i int, s *scratch) {
	lo, hi := i*elementChunk, min((i+1)*elementChunk, len(t.y))
	x, a, e := t.y[lo:hi], t.a[lo:hi], s.elements(t.round)
	switch {
	case t.kind == blend:
		e.blend(x, a, t.b[lo:hi], t.s, t.t)
	case t.b == nil:
		e.step(x, a, t.t)
	default:
		e.guidedStep(x, a, t.b[lo:hi], t.s, t.t)
	}
}

// mix adds the layers of one row in order.
func (t *flowTask) mix(y, x []float32, s *scratch) {
	n := len(y)
	s.f32.scale(y, x[:n], t.weights[0])
	for l, w := range t.weights[1:] {
		s.axpy(y, w, x[(l+1)*n:(l+2)*n])
	}
	e := s.elements(t.round)
	e.round(y)
	e.scale(y, y, t.s)
}
