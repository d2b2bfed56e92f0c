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
	q.run(t, at.N, 8*(len(t.q)+len(t.k)))
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
		at := c.offset(t.layer, block, h) + pos%c.config.BlockSize*d
		c.write(at, key, s.kernels)
		c.write(at+c.values(), v, s.kernels)
	}
}

// cachedTask is one call of CachedAttention; a chunk is one row and one key head with
// the query heads that read it. The softmax runs over one block of the cache at a
// time, with a running maximum, so the working memory does not grow with the song.
type cachedTask struct {
	o, q   []float32
	cache  *kvCache
	layer  int
	qHeads int
	scale  float32
	round  rounding
	at     places
}

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
	t.at = places
	work := 0
	for _, p := range places.pos {
		work += (int(p) + 1) * 2 * qHeads * c.config.HeadDim
	}
	q.run(t, at.N*c.config.Heads, work)
}

func (t *cachedTask) chunk(i int, s *scratch) {
	g := &t.cache.config
	d, size := g.HeadDim, g.BlockSize
	row, head := i/g.Heads, i%g.Heads
	group := t.qHeads / g.Heads
	first := (row*t.qHeads + head*group) * d
	queries, outs := t.q[first:first+group*d], t.o[first:first+group*d]

	memory := grown(&s.a, size*d+size+2*group)
	widened, scores, softs := memory[:size*d], memory[size*d:size*d+size], memory[size*d+size:]
	clear(outs)
	for h := range group {
		softs[2*h], softs[2*h+1] = negInf, 0
	}
	count := int(t.at.pos[row]) + 1
	for start := 0; start < count; start += size {
		n := min(size, count-start)
		at := t.cache.offset(t.layer, t.at.block(row, start, size), head)
		// Scores of all heads first, so that one buffer serves keys and values.
		scores = grown(&s.b, group*size)
		keys := t.cache.read(at, n*d, widened)
		for h := range group {
			dotRows(scores[h*size:h*size+n], queries[h*d:(h+1)*d], keys)
		}
		values := t.cache.read(at+t.cache.values(), n*d, widened)
		for h := range group {
			softmaxStep(outs[h*d:(h+1)*d], scores[h*size:h*size+n], values, t.scale, &softs[2*h], &softs[2*h+1])
		}
	}
	for h := range group {
		softmaxEnd(outs[h*d:(h+1)*d], softs[2*h+1], t.round)
	}
}
