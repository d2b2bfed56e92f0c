package cpu

// With vector kernels, FullAttention is two products of tiles for each block of
// queries and keys: scores = q k^T from panels of keys, and o += p v from panels of
// values. Between them the running softmax goes row by row. Nothing of the size
// length x length is ever stored.
//
// The sums of a query take the keys in order, in blocks of panelKeys: its bits depend
// neither on the other queries of its chunk nor on the size of the tiles.

const (
	panelQueries = 56  // most queries of one chunk: four tiles
	panelKeys    = 256 // keys of one step of the running softmax
)

// panelTask is one call of FullAttention with packed keys and values; a chunk is some
// queries of one head of one batch entry.
type panelTask struct {
	*fullTask
	keys, values           []float32 // panels of all heads, one head after the other
	keyNumbers, valNumbers int       // of one head
	queries                int       // of one chunk
	shape                  [2]int    // of the keys of one batch entry, as a matrix
}

func (q *queue) panelAttention(batch int) {
	t, p := &q.full, &q.panels
	p.fullTask = t
	heads, parts := batch*t.heads, ceilDiv(t.length, panelQueries)
	p.keyNumbers = roundUp(t.length, panelColumns) * t.headDim
	p.valNumbers = t.length * roundUp(t.headDim, panelColumns)
	p.keys, p.values = grown(&p.keys, heads*p.keyNumbers), grown(&p.values, heads*p.valNumbers)
	p.queries = ceilDiv(t.length, parts)
	p.shape = [2]int{t.length, t.heads * t.headDim}
	q.run(packTask{p}, heads, 2*len(t.k))
	q.run(p, heads*parts, 2*t.length*len(t.q)/vectorGain)
}

// packTask packs keys and values; a chunk is one head of one batch entry.
type packTask struct{ *panelTask }

// Keys become panels [length/16][headDim][16], values panels [headDim/16][length][16].
func (t packTask) chunk(i int, s *scratch) {
	d, width := t.headDim, t.heads*t.headDim
	first := i / t.heads * t.length * width
	keys := weight{shape: t.shape[:], floats: t.k[first:]}
	for row := 0; row < t.length; row += panelColumns {
		s.packPanel(t.keys[i*t.keyNumbers+row*d:][:panelColumns*d], &keys, row, i%t.heads*d, d)
	}
	values := t.values[i*t.valNumbers:][:t.valNumbers]
	for j := range t.length {
		row := t.v[first+j*width+i%t.heads*d:][:d]
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

func (t *panelTask) chunk(i int, s *scratch) {
	parts := ceilDiv(t.length, t.queries)
	head, begin := i/parts, i%parts*t.queries
	n := min(t.queries, t.length-begin)
	d, width := t.headDim, t.heads*t.headDim
	base := (head/t.heads*t.length+begin)*width + head%t.heads*d
	keys, values := t.keys[head*t.keyNumbers:], t.values[head*t.valNumbers:]

	columns := roundUp(d, panelColumns)
	queries, sums := grown(&s.a, n*d), grown(&s.b, n*columns)
	gather(queries, t.q[base:], n, d, width)
	scores := grown(&s.panel, n*panelKeys)
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
