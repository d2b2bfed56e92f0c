//go:build !noasm

package cpu

// tileAttention computes FullAttention of bfloat16 on tiles, for 32 queries at a time:
//
//	scores [keys][32]    = k q^T   from rows of keys and pairs of queries
//	sums   [headDim][32] += v^T p  from columns of values and pairs of weights
//
// A weight is float32, so it takes part as the three bfloat16 numbers whose sum it is.
// A lane is a query: nothing is added across lanes. The sums of a query take the keys in
// order, in blocks of tileKeys, and do not depend on its neighbours. A chunk is some
// queries of one head of one batch entry, and packs the keys and values of that head.
type tileAttention fullTask

const (
	tileQueries = 32
	tileKeys    = 256 // keys of one step of the running softmax; pairs of tiles
)

// attendTiles runs q.full, of which the operands are set.
func (q *queue) attendTiles(batch int) {
	t := &q.full
	q.run((*tileAttention)(t), t.cut(q.pool.helpers+1, batch, tileQueries), 2*t.length*len(t.q)/vectorGain)
}

func (t *tileAttention) chunk(i int, s *scratch) {
	head, begin, end := (*fullTask)(t).part(i)
	first := (*fullTask)(t).place(head)
	h := t.pack(first, s)
	for ; begin < end; begin += tileQueries {
		t.attend(first+begin*t.heads*t.headDim, min(tileQueries, end-begin), &h, s)
	}
}

// tileHead is one head as rows of bfloat16, with zeros behind each size up to that of a tile.
type tileHead struct {
	keys     []uint16 // [length][headDim]
	keyRow   int      // numbers
	values   []uint16 // [headDim][length]
	valueRow int
}

func (t *tileAttention) pack(first int, s *scratch) tileHead {
	d, width := t.headDim, t.heads*t.headDim
	h := tileHead{keyRow: roundUp(d, stepTerms), valueRow: roundUp(t.length, stepTerms)}
	size := roundUp(t.length, 16) * h.keyRow
	packed := aligned(&s.head, size+roundUp(d, 16)*h.valueRow)
	h.keys, h.values = packed[:size], packed[size:]
	for j := range t.length {
		row := h.keys[j*h.keyRow:][:h.keyRow]
		s.narrow(row[:d], t.k[first+j*width:][:d])
		clear(row[d:])
	}
	clear(h.keys[t.length*h.keyRow:])
	clear(h.values[d*h.valueRow:])
	last := roundUp(t.length, 16)
	for column := 0; column < d; column += 16 {
		columns := min(16, d-column)
		for j := 0; j < t.length; j += 16 {
			packColumns(&h.values[column*h.valueRow+j], 2*h.valueRow, &t.v[first+j*width+column], 4*width, min(16, t.length-j), columns)
		}
		for c := column; c < column+columns && last < h.valueRow; c++ {
			clear(h.values[c*h.valueRow+last : (c+1)*h.valueRow])
		}
	}
	return h
}

// columnSoftmax is what a step of the running softmax is told: to take the scores of
// 32 queries with some keys. The assembly knows the names of the fields.
type columnSoftmax struct {
	scores     *float32 // [keys][32]
	keys       int
	scale      float32
	top, total *float32 // [32]
	weights    *uint16  // three terms, each [keys/32][2][16 pairs of keys][16 queries][2]
	term       int      // bytes from one term to the next
	sums       *float32 // [rows][32], to be multiplied by what the earlier weights shrink by
	rows       int
}

// columnStore is what the last step is told: y [rows, columns] = r(sums / total) for up to
// 16 queries. The assembly knows the names of the fields.
type columnStore struct {
	sums          *float32 // [columns][32]
	total         *float32
	y             *float32
	yRow          int // bytes
	rows, columns int
}

// attend computes up to 32 queries of a head, of which the first begins at base.
func (t *tileAttention) attend(base, count int, h *tileHead, s *scratch) {
	const term = tileKeys * tileQueries
	d, width := t.headDim, t.heads*t.headDim
	steps, rows := h.keyRow/stepTerms, roundUp(d, 16)

	packed := aligned(&s.packed, steps*stepTerms*tileQueries+3*term)
	queries, weights := packed[:steps*stepTerms*tileQueries], packed[steps*stepTerms*tileQueries:]
	for step := range steps {
		for half := range 2 {
			dst := queries[(2*step+half)*16*stepTerms:][:16*stepTerms]
			if n := min(16, count-16*half); n > 0 {
				packPairs(&dst[0], &t.q[base+16*half*width+step*stepTerms], 4*width, n, 1, min(stepTerms, d-step*stepTerms), 64)
			} else {
				clear(dst)
			}
		}
	}
	floats := aligned(&s.tiles, (2+tileKeys+rows)*tileQueries)
	top, total := floats[:tileQueries], floats[tileQueries:2*tileQueries]
	scores, sums := floats[2*tileQueries:(2+tileKeys)*tileQueries], floats[(2+tileKeys)*tileQueries:]
	for q := range top {
		top[q], total[q] = negInf, 0
	}
	var shapes tileShapes
	for i := range 4 {
		shapes.set(i, 16, 64)
	}
	for start := 0; start < t.length; start += tileKeys {
		n := min(tileKeys, t.length-start)
		keys := amxConvProduct{
			shapes: &shapes, sums: &scores[0],
			x: &h.keys[start*h.keyRow], xRow: 2 * h.keyRow,
			w: &queries[0], wStep: 4 * 16 * stepTerms,
			blocks: ceilDiv(n, 16), taps: 1, steps: steps, ahead: 32 * h.keyRow,
		}
		amxConv(&keys)
		if last := n % stepTerms; last > 0 {
			for i := range 3 {
				clear(weights[i*term+(n-last)*tileQueries:][:stepTerms*tileQueries])
			}
		}
		softmax := columnSoftmax{
			scores: &scores[0], keys: n, scale: t.scale, top: &top[0], total: &total[0],
			weights: &weights[0], term: 2 * term, sums: &sums[0],
		}
		if start > 0 {
			softmax.rows = rows
		}
		softmaxColumns(&softmax)
		values := amxConvProduct{
			shapes: &shapes, sums: &sums[0], resume: start > 0,
			x: &h.values[start], xRow: 2 * h.valueRow,
			w: &weights[0], wStep: 4 * 16 * stepTerms, wTap: 2 * term,
			blocks: rows / 16, taps: 3, steps: ceilDiv(n, stepTerms), ahead: 32 * h.valueRow,
		}
		amxConv(&values)
	}
	for half := 0; half < count; half += 16 {
		store := columnStore{
			sums: &sums[half], total: &total[half], y: &t.o[base+half*width], yRow: 4 * width,
			rows: min(16, count-half), columns: d,
		}
		storeColumns(&store)
	}
}
