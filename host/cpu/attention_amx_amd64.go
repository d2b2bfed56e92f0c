//go:build !noasm

package cpu

// tileAttention computes FullAttention of bfloat16 on tiles, for 32 queries at a time:
//
//	scores [keys][32]    = k q^T   from rows of keys and pairs of queries
//	sums   [headDim][32] += v^T p  from columns of values and pairs of weights
//
// A weight is float32, so that it takes part as three bfloat16 numbers whose sum it is.
// A lane is a query: nothing is added across lanes. The sums of a query take the keys in
// order, in blocks of tileKeys, and do not depend on its neighbours.
type tileAttention fullTask

const (
	tileQueries = 32
	chunkTiles  = 4   // of so many queries in a chunk
	tileKeys    = 256 // keys of one step of the running softmax; pairs of tiles
)

// attendTiles runs q.full, of which the operands are set.
func (q *queue) attendTiles(batch int) {
	t := &q.full
	p, heads := &t.packed, batch*t.heads
	p.keyRow, p.valueRow = roundUp(t.headDim, stepTerms), roundUp(t.length, stepTerms)
	p.keyNumbers, p.valueNumbers = roundUp(t.length, 16)*p.keyRow, roundUp(t.headDim, 16)*p.valueRow
	aligned(&p.keys, heads*p.keyNumbers)
	aligned(&p.values, heads*p.valueNumbers)
	q.run((*tilePacking)(t), heads, 2*len(t.k))
	q.run((*tileAttention)(t), heads*ceilDiv(t.length, chunkTiles*tileQueries), 2*t.length*len(t.q)/vectorGain)
}

// tilePacking packs keys and values; a chunk is one head of one batch entry.
type tilePacking fullTask

func (t *tilePacking) chunk(i int, s *scratch) {
	d, width := t.headDim, t.heads*t.headDim
	first := i/t.heads*t.length*width + i%t.heads*d
	p := &t.packed
	keys, values := p.keys[i*p.keyNumbers:][:p.keyNumbers], p.values[i*p.valueNumbers:][:p.valueNumbers]
	for j := range t.length {
		row := keys[j*p.keyRow:][:p.keyRow]
		s.narrow(row[:d], t.k[first+j*width:][:d])
		clear(row[d:])
	}
	clear(keys[t.length*p.keyRow:])
	clear(values[d*p.valueRow:])
	for column := 0; column < d; column += 16 {
		for j := 0; j < p.valueRow; j += 16 {
			if j >= t.length {
				for c := column; c < min(column+16, d); c++ {
					clear(values[c*p.valueRow+j:][:16])
				}
				continue
			}
			packColumns(&values[column*p.valueRow+j], 2*p.valueRow, &t.v[first+j*width+column], 4*width, min(16, t.length-j), min(16, d-column))
		}
	}
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

func (t *tileAttention) chunk(i int, s *scratch) {
	parts := ceilDiv(t.length, chunkTiles*tileQueries)
	head, begin := i/parts, i%parts*chunkTiles*tileQueries
	for q := begin; q < min(begin+chunkTiles*tileQueries, t.length); q += tileQueries {
		t.tile(head, q, s)
	}
}

// tile computes up to 32 queries of a head.
func (t *tileAttention) tile(head, begin int, s *scratch) {
	const term = tileKeys * tileQueries
	p := &t.packed
	d, width := t.headDim, t.heads*t.headDim
	steps, rows := p.keyRow/stepTerms, roundUp(d, 16)
	count := min(tileQueries, t.length-begin)
	at := (head/t.heads*t.length+begin)*width + head%t.heads*d

	packed := aligned(&s.packed, steps*stepTerms*tileQueries+3*term)
	queries, weights := packed[:steps*stepTerms*tileQueries], packed[steps*stepTerms*tileQueries:]
	for step := range steps {
		for half := range 2 {
			dst := queries[(2*step+half)*16*stepTerms:][:16*stepTerms]
			if n := min(16, count-16*half); n > 0 {
				packPairs(&dst[0], &t.q[at+16*half*width+step*stepTerms], 4*width, n, 1, min(stepTerms, d-step*stepTerms), 64)
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
			x: &p.keys[head*p.keyNumbers+start*p.keyRow], xRow: 2 * p.keyRow,
			w: &queries[0], wStep: 4 * 16 * stepTerms,
			blocks: ceilDiv(n, 16), taps: 1, steps: steps, ahead: 32 * p.keyRow,
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
			x: &p.values[head*p.valueNumbers+start], xRow: 2 * p.valueRow,
			w: &weights[0], wStep: 4 * 16 * stepTerms, wTap: 2 * term,
			blocks: rows / 16, taps: 3, steps: ceilDiv(n, stepTerms), ahead: 32 * p.valueRow,
		}
		amxConv(&values)
	}
	for half := 0; half < count; half += 16 {
		store := columnStore{
			sums: &sums[half], total: &total[half], y: &t.o[at+half*width], yRow: 4 * width,
			rows: min(16, count-half), columns: d,
		}
		storeColumns(&store)
	}
}
