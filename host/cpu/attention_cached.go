package cpu

import (
	"fmt"

	"skald/host/compute"
)

// appendTask is one call of AppendKV; a chunk is one row.
type appendTask struct {
	cache        *kvCache
	layer        int
	q, k, v      []float32
	qHeads       int
	qNorm, kNorm []float32
	eps          float32
	rotation     rotation
	round        rounding
	at           places
}

func (q *queue) AppendKV(a compute.AppendKV, at compute.Rows) {
	o := operands{op: "AppendKV"}
	c := o.cache(a.Cache, a.Layer)
	o.size("QHeads", a.QHeads)
	d := c.config.HeadDim
	t := &q.append
	t.cache, t.layer, t.qHeads, t.eps = c, a.Layer, a.QHeads, a.Eps
	t.q = o.floats("Q", a.Q, at.N*a.QHeads*d)
	t.k = o.floats("K", a.K, at.N*c.config.Heads*d)
	t.v = o.floats("V", a.V, at.N*c.config.Heads*d)
	t.qNorm, t.kNorm = o.vector("QNorm", a.QNorm, d), o.vector("KNorm", a.KNorm, d)
	t.rotation = o.rotation(a.Rope, d)
	t.round = o.dtype == compute.BF16
	if q.err != nil {
		return
	}
	places, err := o.rows(at, c)
	if err != nil {
		q.fail(err)
		return
	}
	t.at = places
	if t.rotation.half > 0 {
		for i, p := range places.pos {
			if int(p) >= t.rotation.positions() {
				q.fail(fmt.Errorf("cpu: AppendKV: row %d is at position %d, the rope table has %d", i, p, t.rotation.positions()))
				return
			}
		}
	}
	q.run(t, at.N, q.elementWork(len(t.q)+len(t.k), 8))
}

func (t *appendTask) chunk(i int, s *scratch) {
	c := t.cache
	d, heads, e := c.config.HeadDim, c.config.Heads, s.elements(t.round)
	pos := int(t.at.pos[i])
	for h := range t.qHeads {
		head := t.q[(i*t.qHeads+h)*d:][:d]
		if t.qNorm != nil {
			s.rmsNorm(head, head, t.qNorm, t.eps, t.round)
		}
		t.rotation.turn(head, pos, e)
	}
	block := t.at.block(i, pos, c.config.BlockSize)
	key := grown(&s.a, d)
	for h := range heads {
		k, v := t.k[(i*heads+h)*d:][:d], t.v[(i*heads+h)*d:][:d]
		if t.kNorm != nil {
			s.rmsNorm(key, k, t.kNorm, t.eps, t.round)
		} else {
			copy(key, k)
		}
		t.rotation.turn(key, pos, e)
		c.write(t.layer, block, h, pos%c.config.BlockSize, key, v, s)
	}
}

// cachedTask is one call of CachedAttention; a chunk is a run of rows of one sequence, as
// a prompt has them, and one key head with the query heads that read it. The softmax runs
// over some blocks of the cache at a time, with a running maximum, so the working memory
// does not grow with the song. All rows of a run take a step before the next, while its
// keys and values are in the cache of the processor; what a row computes, and in which
// order, does not depend on the others.
type cachedTask struct {
	o, q   []float32
	cache  *kvCache
	layer  int
	qHeads int
	scale  float32
	round  rounding
	at     places
	runs   []cachedRun
}

// cachedRun is some rows of one sequence.
type cachedRun struct {
	first, rows int
	last        int // row of the highest position
}

// runRows is how many rows a run has at most: more hardly read less, and are fewer chunks.
const runRows = 16

func (q *queue) CachedAttention(out, query compute.Buffer, cache compute.KVCache, layer, qHeads int, scale float32, at compute.Rows) {
	o := operands{op: "CachedAttention"}
	c := o.cache(cache, layer)
	if qHeads <= 0 || qHeads%c.config.Heads != 0 {
		o.fail("qHeads is %d, want a multiple of the cache's %d heads", qHeads, c.config.Heads)
	}
	t := &q.cached
	t.cache, t.layer, t.qHeads, t.scale = c, layer, qHeads, scale
	t.o = o.floats("o", out, at.N*qHeads*c.config.HeadDim)
	t.q = o.floats("q", query, at.N*qHeads*c.config.HeadDim)
	o.apart("o", t.o, "q", t.q)
	t.round = o.dtype == compute.BF16
	if q.err != nil {
		return
	}
	places, err := o.rows(at, c)
	if err != nil {
		q.fail(err)
		return
	}
	t.place(places)
	work := 0
	for _, p := range places.pos {
		work += (int(p) + 1) * 2 * qHeads * c.config.HeadDim
	}
	if q.pool.kernels.panels.there() {
		work /= vectorGain
	}
	q.run(t, len(t.runs)*c.config.Heads, work)
}

// place sets where the rows stand, and finds the runs among them.
func (t *cachedTask) place(at places) {
	t.at, t.runs = at, t.runs[:0]
	for i, p := range at.pos {
		if n := len(t.runs); n > 0 && t.runs[n-1].rows < runRows && at.seq[i] == at.seq[i-1] {
			run := &t.runs[n-1]
			run.rows++
			if p > at.pos[run.last] {
				run.last = i
			}
			continue
		}
		t.runs = append(t.runs, cachedRun{first: i, rows: 1, last: i})
	}
}

// cachedKeys is how many positions one step of the running softmax takes, or one block
// if that is more.
const cachedKeys = 256

func (t *cachedTask) chunk(i int, s *scratch) {
	c := t.cache
	g := &c.config
	d, size := g.HeadDim, g.BlockSize
	run, head := &t.runs[i/g.Heads], i%g.Heads
	group := t.qHeads / g.Heads

	// Kernels take one query head or several, and several panels; what there is
	// beyond group, headDim and the last position is computed and never read.
	kernels := s.cachedKernels(g.DType)
	rows, scores, mix := 1, kernels.scores1, kernels.mix1
	if group > 1 {
		rows, scores, mix = cachedRows, kernels.scores4, kernels.mix4
	}
	blocks := max(1, cachedKeys/size) // of one step
	width, columns := roundUp(blocks*c.keyPanels, cachedPanels)*panelColumns, roundUp(d, cachedPanels*panelColumns)
	padded := roundUp(group, rows)
	memory := grown(&s.b, padded*(width+run.rows*columns))
	weights, allSums := memory[:padded*width], memory[padded*width:]
	clear(allSums)
	allStates := grown(&s.softmax, run.rows*group)
	for h := range allStates {
		allStates[h] = softmaxState{top: negInf}
	}

	tile := &s.cached
	*tile = cachedTile{rows: rows, floats: c.floats, bits: c.bits, panelSize: c.valuePanel, panels: c.valuePanels}
	longest := int(t.at.pos[run.last]) + 1
	for start := 0; start < longest; start += blocks * size {
		keys, values := t.places(s, run.last, head, start, min(blocks*size, longest-start))
		for r := range run.rows {
			n := min(blocks*size, int(t.at.pos[run.first+r])+1-start)
			if n <= 0 {
				continue
			}
			queries := t.queries(s, run.first+r, head, group, padded)
			sums, states := allSums[r*padded*columns:], allStates[r*group:(r+1)*group]
			tile.offsets, tile.count, tile.k = keys, ceilDiv(n, size)*c.keyPanels, d
			for h := 0; h < group; h += rows {
				tile.x, tile.xRow = queries[h*d:], 4*d
				tile.sums, tile.sumsRow = weights[h*width:], 4*width
				scores(tile)
			}
			for h := range group {
				p := weights[h*width : (h+1)*width]
				if lanes := c.keyPanels * panelColumns; lanes > size {
					for b := 1; b*size < n; b++ {
						copy(p[b*size:(b+1)*size], p[b*lanes:])
					}
				}
				if shrink := s.softmaxRow(p[:n], t.scale, &states[h]); shrink != 1 {
					row := sums[h*columns : (h+1)*columns]
					s.f32.scale(row, row, shrink)
				}
			}
			tile.offsets, tile.count, tile.k, tile.last = values, ceilDiv(n, size), size, (n-1)%size+1
			for h := 0; h < group; h += rows {
				tile.x, tile.xRow = weights[h*width:], 4*width
				tile.sums, tile.sumsRow = sums[h*columns:], 4*columns
				mix(tile)
			}
		}
	}
	*tile = cachedTile{} // the cache may be closed
	e := s.elements(t.round)
	for r := range run.rows {
		o := t.o[((run.first+r)*t.qHeads+head*group)*d:]
		for h := range group {
			e.scale(o[h*d:(h+1)*d], allSums[(r*padded+h)*columns:][:d], 1/allStates[r*group+h].total)
		}
	}
}

// queries returns the query heads of a row that read one key head, filled up with zeros
// to padded heads.
func (t *cachedTask) queries(s *scratch, row, head, group, padded int) []float32 {
	d := t.cache.config.HeadDim
	first := (row*t.qHeads + head*group) * d
	q := t.q[first : first+group*d]
	if padded > group {
		own := grown(&s.a, padded*d)
		clear(own[copy(own, q):])
		return own
	}
	return q
}

// places lists where the panels of the keys of n positions from start on begin, and the
// values of each of their blocks. Behind the keys stand places to fill the last group of
// panels and to prefetch, behind the values one to prefetch.
func (t *cachedTask) places(s *scratch, row, head, start, n int) (keys, values []int) {
	c, size := t.cache, t.cache.config.BlockSize
	blocks := ceilDiv(n, size)
	places := grown(&s.places, blocks*c.keyPanels+2*cachedPanels+blocks+1)
	keys, values = places[:len(places)-blocks-1], places[len(places)-blocks-1:]
	for b := range blocks {
		block := t.at.block(row, start+b*size, size)
		for p := range c.keyPanels {
			keys[b*c.keyPanels+p] = c.keys(t.layer, block, head) + p*c.keyPanel
		}
		values[b] = c.values(t.layer, block, head)
	}
	for i := range 2 * cachedPanels {
		keys[blocks*c.keyPanels+i] = values[0]
	}
	values[blocks] = values[0]
	return keys, values
}
