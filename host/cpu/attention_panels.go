package cpu

// With vector kernels, FullAttention is two products of tiles for each block of
// queries and keys: scores = q k^T from panels of keys, and o += p v from panels of
// values. Between them the running softmax goes row by row. Nothing of the size
// length x length is ever stored.
//
// The sums of a query take the keys in order, in blocks of panelKeys: its bits depend
// neither on the other queries of its chunk nor on the size of the tiles.

const (
	panelQueries = 56  // most queries computed together: four tiles
	panelKeys    = 256 // keys of one step of the running softmax
)

// panelTask is one call of FullAttention; a chunk is some queries of one head of one batch
// entry, and packs the keys and values of that head.
type panelTask fullTask

func (q *queue) attendPanels(batch int) {
	t := &q.full
	q.run((*panelTask)(t), t.cut(q.pool.helpers+1, batch, panelQueries), 2*t.length*len(t.q)/vectorGain)
}

func (t *panelTask) chunk(i int, s *scratch) {
	keys := grown(&s.panel, roundUp(t.length, panelColumns)*t.headDim)
	values := grown(&s.values, t.length*roundUp(t.headDim, panelColumns))
	head, begin, end := (*fullTask)(t).part(i)
	first := (*fullTask)(t).place(head)
	t.pack(first, keys, values, s)
	for left := ceilDiv(end-begin, panelQueries); left > 0; left-- {
		n := ceilDiv(end-begin, left)
		t.attend(first+begin*t.heads*t.headDim, n, keys, values, s)
		begin += n
	}
}

// pack makes panels [length/16][headDim][16] of keys and [headDim/16][length][16] of values.
func (t *panelTask) pack(first int, keys, values []float32, s *scratch) {
	d, width := t.headDim, t.heads*t.headDim
	matrix := weight{shape: t.shape[:], floats: t.k[first:]}
	for row := 0; row < t.length; row += panelColumns {
		s.packPanel(keys[row*d:][:panelColumns*d], &matrix, row, 0, d)
	}
	for j := range t.length {
		row := t.v[first+j*width:][:d]
		at := j * panelColumns
		for len(row) >= panelColumns {
			*(*[panelColumns]float32)(values[at:]) = [panelColumns]float32(row)
			row, at = row[panelColumns:], at+t.length*panelColumns
		}
		if len(row) > 0 {
			clear(values[at+copy(values[at:], row):][:panelColumns-len(row)])
		}
	}
}

// attend computes n queries of a head, of which the first begins at base.
func (t *panelTask) attend(base, n int, keys, values []float32, s *scratch) {
	d, width := t.headDim, t.heads*t.headDim
	columns := roundUp(d, panelColumns)
	queries, sums := grown(&s.a, n*d), grown(&s.b, n*columns)
	gather(queries, t.q[base:], n, d, width)
	scores := grown(&s.rows, n*panelKeys)
	states := grown(&s.softmax, n)
	for j := range states {
		states[j] = softmaxState{top: negInf}
	}
	tile := &s.tile
	tile.taps = 1
	for start := 0; start < t.length; start += panelKeys {
		count := min(panelKeys, t.length-start)
		tile.k, tile.resume = d, false
		panels := ceilDiv(count, panelColumns)
		s.multiply(tile, queries, d, keys[start*d:], panelColumns*d, n, panels, scores)
		for j := range n {
			shrink := s.softmaxRow(scores[j*panels*panelColumns:][:count], t.scale, &states[j])
			if shrink != 1 && start > 0 {
				row := sums[j*columns : (j+1)*columns]
				s.f32.scale(row, row, shrink)
			}
		}
		tile.k, tile.resume = count, start > 0
		s.multiply(tile, scores, panels*panelColumns, values[start*panelColumns:], t.length*panelColumns, n, columns/panelColumns, sums)
	}
	e := s.elements(t.round)
	for j := range n {
		e.scale(t.o[base+j*width:][:d], sums[j*columns:][:d], 1/states[j].total)
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
