package cpu

import "skald/host/compute"

const (
	fullQueries = 16 // queries of one chunk; they share the keys in the cache
	fullKeys    = 64 // keys of one step of the running softmax
)

// fullTask is one call of FullAttention; a chunk is some queries of one head of one
// batch entry.
type fullTask struct {
	o, q, k, v             []float32
	length, heads, headDim int
	scale                  float32
	round                  rounding
	shape                  [2]int // of a batch entry of k or v as a matrix

	parts, queries int // chunks of one head, and the queries of each
}

// cut makes chunks of at least block queries, few enough that it pays for each to pack the
// keys and values of its head, and two for each worker where there are so many.
func (t *fullTask) cut(workers, batch, block int) (chunks int) {
	heads := batch * t.heads
	t.queries = roundUp(ceilDiv(t.length, ceilDiv(2*workers, heads)), block)
	t.parts = ceilDiv(t.length, t.queries)
	return heads * t.parts
}

// part returns the head of a chunk and its queries.
func (t *fullTask) part(i int) (head, begin, end int) {
	begin = i % t.parts * t.queries
	return i / t.parts, begin, min(begin+t.queries, t.length)
}

// place is where a head of one batch entry begins in q, k, v and o.
func (t *fullTask) place(head int) int {
	return (head/t.heads*t.length*t.heads + head%t.heads) * t.headDim
}

func (q *queue) FullAttention(out, query, key, value compute.Buffer, batch, length, heads, headDim int, scale float32) {
	o := operands{op: "FullAttention"}
	o.size("batch", batch)
	o.size("length", length)
	o.size("heads", heads)
	o.size("headDim", headDim)
	n := batch * length * heads * headDim
	t := &q.full
	t.length, t.heads, t.headDim, t.scale = length, heads, headDim, scale
	t.o, t.q = o.floats("o", out, n), o.floats("q", query, n)
	t.k, t.v = o.floats("k", key, n), o.floats("v", value, n)
	o.apart("o", t.o, "q", t.q)
	o.apart("o", t.o, "k", t.k)
	o.apart("o", t.o, "v", t.v)
	t.round = o.dtype == compute.BF16
	t.shape = [2]int{length, heads * headDim}
	switch {
	case n == 0:
	case bool(t.round) && q.pool.kernels.attendBF16 != nil:
		q.pool.kernels.attendBF16(q, batch)
	case q.job.scratch.panels.there():
		q.attendPanels(batch)
	default:
		q.run(t, batch*heads*ceilDiv(length, fullQueries), 2*n*length)
	}
}

func (t *fullTask) chunk(i int, s *scratch) {
	parts := ceilDiv(t.length, fullQueries)
	entry, head, begin := i/parts/t.heads, i/parts%t.heads, i%parts*fullQueries
	queries := min(fullQueries, t.length-begin)
	d, width := t.headDim, t.heads*t.headDim
	base := entry*t.length*width + head*d

	keys, values := grown(&s.a, fullKeys*d), grown(&s.b, fullKeys*d)
	var scores [fullKeys]float32
	var states [fullQueries]softmaxState
	for j := range queries {
		states[j].top = negInf
		clear(t.o[base+(begin+j)*width:][:d])
	}
	for start := 0; start < t.length; start += fullKeys {
		n := min(fullKeys, t.length-start)
		gather(keys, t.k[base+start*width:], n, d, width)
		gather(values, t.v[base+start*width:], n, d, width)
		for j := range queries {
			at := base + (begin+j)*width
			dotRows(scores[:n], t.q[at:at+d], keys)
			softmaxStep(t.o[at:at+d], scores[:n], values, t.scale, &states[j])
		}
	}
	for j := range queries {
		row := t.o[base+(begin+j)*width:][:d]
		t.round.scale(row, row, 1/states[j].total)
	}
}

// gather copies n rows of d numbers that lie stride apart.
func gather(dst, src []float32, n, d, stride int) {
	for i := range n {
		copy(dst[i*d:(i+1)*d], src[i*stride:])
	}
}
