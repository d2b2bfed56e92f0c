//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"skald/host/compute"
)

// places unwraps the places of a ragged batch.
func (o *operands) places(at compute.Rows) C.skald_rows {
	o.size("Rows.N", at.N)
	if at.MaxBlocks <= 0 {
		o.fail("Rows.MaxBlocks is %d", at.MaxBlocks)
	}
	o.size("Rows.MaxBlocks", at.MaxBlocks)
	pos, seq := o.ints("Rows.Pos", at.Pos, at.N), o.ints("Rows.Seq", at.Seq, at.N)
	blocks := o.ints("Rows.Blocks", at.Blocks, 0)
	return C.skald_rows{pos: ints(pos.at), seq: ints(seq.at), blocks: ints(blocks.at),
		n: C.int32_t(at.N), sequences: C.int32_t(blocks.n / at.MaxBlocks), max_blocks: C.int32_t(at.MaxBlocks)}
}

// rotation unwraps a table for heads of headDim.
func (o *operands) rotation(r compute.RopeTable, headDim int) (table C.skald_rope_table) {
	if r.Dim == 0 {
		return table
	}
	if r.Dim < 0 || r.Dim%2 != 0 || r.Dim > headDim {
		o.fail("rope turns %d numbers of a head of %d, want an even number of them", r.Dim, headDim)
	}
	n := o.buffer("Cos", r.Cos).n
	cos, sin := o.floats("Cos", r.Cos, n), o.floats("Sin", r.Sin, n)
	return C.skald_rope_table{cos: pointer(cos.at), sin: pointer(sin.at), dim: C.int32_t(r.Dim), positions: C.int32_t(n / (r.Dim / 2))}
}

func (q *queue) AppendKV(a compute.AppendKV, at compute.Rows) {
	o := operands{op: "AppendKV"}
	c := o.cache(a.Cache, a.Layer)
	o.size("QHeads", a.QHeads)
	d := c.config.HeadDim
	query := o.floats("Q", a.Q, at.N*a.QHeads*d)
	key := o.floats("K", a.K, at.N*c.config.Heads*d)
	value := o.floats("V", a.V, at.N*c.config.Heads*d)
	qNorm, kNorm := o.vector("QNorm", a.QNorm, d), o.vector("KNorm", a.KNorm, d)
	rope, rows, cache := o.rotation(a.Rope, d), o.places(at), c.c()
	if at.N == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add("AppendKV", func() error {
		return kernel(C.skald_append_kv(t, &cache, C.int(a.Layer), pointer(query.at), pointer(key.at), pointer(value.at), C.int(a.QHeads),
			floats(qNorm), floats(kNorm), C.float(a.Eps), &rope, &rows, ints(q.fault), q.s()))
	})
	q.mayFault = true
}

func (q *queue) CachedAttention(out, query compute.Buffer, cache compute.KVCache, layer, qHeads int, scale float32, at compute.Rows) {
	o := operands{op: "CachedAttention"}
	c := o.cache(cache, layer)
	if qHeads <= 0 || qHeads%c.config.Heads != 0 {
		o.fail("qHeads is %d, want a multiple of the cache's %d heads", qHeads, c.config.Heads)
	}
	o.size("qHeads", qHeads)
	n := at.N * qHeads * c.config.HeadDim
	to, from := o.floats("o", out, n), o.floats("q", query, n)
	o.apart("o", to, n, "q", from, n)
	rows, own := o.places(at), c.c()
	if at.N == 0 {
		return
	}
	t := C.int(o.dtype)
	q.grow(&q.workspace, int64(C.skald_attention_workspace(&own, C.int(qHeads), C.int(at.N), C.int(at.MaxBlocks))), "the workspace of attention")
	q.add("CachedAttention", func() error {
		return kernel(C.skald_cached_attention(t, pointer(to.at), pointer(from.at), &own, C.int(layer), C.int(qHeads), C.float(scale), &rows,
			pointer(q.workspace.at), ints(q.fault), q.s()))
	})
	q.mayFault = true
}

func (q *queue) CopyBlock(cache compute.KVCache, dst, src int) {
	o := operands{op: "CopyBlock"}
	c := o.cache(cache, 0)
	if dst < 0 || dst >= c.config.Blocks || src < 0 || src >= c.config.Blocks {
		o.fail("from block %d to %d, the cache has %d", src, dst, c.config.Blocks)
	}
	own := c.c()
	q.add("CopyBlock", func() error { return kernel(C.skald_copy_block(&own, C.int(dst), C.int(src), q.s())) })
}

func (q *queue) Rope(x compute.Buffer, batch, length, heads, headDim int, table compute.RopeTable) {
	o := operands{op: "Rope"}
	o.size("batch", batch)
	o.size("length", length)
	o.size("heads", heads)
	o.size("headDim", headDim)
	n := batch * length * heads * headDim
	to := o.floats("x", x, n)
	rope := o.rotation(table, headDim)
	if table.Dim == 0 || n == 0 {
		return
	}
	if int(rope.positions) < length {
		o.fail("the table has %d positions, want %d", rope.positions, length)
	}
	t := C.int(o.dtype)
	q.add("Rope", func() error {
		return kernel(C.skald_rope(t, pointer(to.at), C.int(batch), C.int(length), C.int(heads), C.int(headDim), &rope, q.s()))
	})
}

func (q *queue) FullAttention(out, query, key, value compute.Buffer, batch, length, heads, headDim int, scale float32) {
	o := operands{op: "FullAttention"}
	o.size("batch", batch)
	o.size("length", length)
	o.size("heads", heads)
	o.size("headDim", headDim)
	n := batch * length * heads * headDim
	to, from := o.floats("o", out, n), o.floats("q", query, n)
	k, v := o.floats("k", key, n), o.floats("v", value, n)
	o.apart("o", to, n, "q", from, n)
	o.apart("o", to, n, "k", k, n)
	o.apart("o", to, n, "v", v, n)
	if n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add("FullAttention", func() error {
		return kernel(C.skald_full_attention(t, pointer(to.at), pointer(from.at), pointer(k.at), pointer(v.at),
			C.int(batch), C.int(length), C.int(heads), C.int(headDim), C.float(scale), q.s()))
	})
}
