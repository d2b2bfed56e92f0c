package music3

import (
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// depthEps is the epsilon of the depth decoder's norms; its configuration has none.
const depthEps = 1e-6

// DepthDecoder is the small decoder that runs within a frame: from the language
// model's hidden state and the semantic code it draws the residual codes one after
// another. H is the hidden size (the language model's), A the codes of a residual
// codebook, B the number of codebooks, the semantic one included.
type DepthDecoder struct {
	cfg   checkpoint.DepthDecoder
	dtype compute.DType

	embeddings compute.Weight   // [(B-1)*A, H], codebook after codebook
	projection compute.Weight   // [H, H]
	positions  []compute.Buffer // [H] each, one learned embedding per position
	layers     []depthLayer
	norm       compute.Weight   // [H]
	heads      []compute.Weight // [A, H] each, for codes 1 to B-1
}

type depthLayer struct {
	inputNorm, postNorm compute.Weight // [H]
	q, k, v, o          compute.Weight // [H, H]
	gate, up, down      compute.Weight // [F, H], [F, H], [H, F]
}

func loadDepthDecoder(l *loader, a *allocator, cfg checkpoint.DepthDecoder, dtype compute.DType) *DepthDecoder {
	l.component = "rvq_depth_decoder"
	d := &DepthDecoder{cfg: cfg, dtype: dtype}
	d.embeddings = l.weight("audio_embeddings.weight", compute.UseTable, dtype)
	d.projection = l.weight("projection.weight", compute.UseLinear, dtype)
	for i := range cfg.Layers {
		name := func(s string) string { return fmt.Sprintf("layers.%d.%s.weight", i, s) }
		d.layers = append(d.layers, depthLayer{
			inputNorm: l.weight(name("input_layernorm"), compute.UseVector, dtype),
			postNorm:  l.weight(name("post_attention_layernorm"), compute.UseVector, dtype),
			q:         l.weight(name("attn.to_q"), compute.UseLinear, dtype),
			k:         l.weight(name("attn.to_k"), compute.UseLinear, dtype),
			v:         l.weight(name("attn.to_v"), compute.UseLinear, dtype),
			o:         l.weight(name("attn.to_out"), compute.UseLinear, dtype),
			gate:      l.weight(name("gate_proj"), compute.UseLinear, dtype),
			up:        l.weight(name("up_proj"), compute.UseLinear, dtype),
			down:      l.weight(name("down_proj"), compute.UseLinear, dtype),
		})
	}
	d.norm = l.weight("norm.weight", compute.UseVector, dtype)
	for j := range cfg.Codebooks - 1 {
		d.heads = append(d.heads, l.weight(fmt.Sprintf("audio_heads.%d.weight", j), compute.UseLinear, dtype))
	}
	table := l.floats("pos_embedding.weight", dtype)
	if l.err != nil {
		return d
	}
	all := a.upload(dtype, table)
	for p := 0; a.err == nil && p < cfg.Codebooks; p++ {
		d.positions = append(d.positions, all.Slice(p*cfg.HiddenSize, (p+1)*cfg.HiddenSize))
	}
	return d
}

// depthBuffers is the working memory of a frame of up to `rows` rows. The first pass
// has two positions, so the stacks are twice as tall.
type depthBuffers struct {
	raw, h, n, q, k, v, o, gate, up compute.Buffer
	logits                          compute.Buffer // [rows, A]
	views                           views
	products                        *group
}

func (d *DepthDecoder) newBuffers(a *allocator, rows int) depthBuffers {
	h, f := d.cfg.HiddenSize, d.cfg.IntermediateSize
	get := func(width int) compute.Buffer { return a.buffer(d.dtype, 2*rows*width) }
	return depthBuffers{
		raw: get(h), h: get(h), n: get(h), q: get(h), k: get(h), v: get(h), o: get(h),
		gate: get(f), up: get(f), logits: a.buffer(d.dtype, rows*d.cfg.AudioVocabSize),
		views: views{}, products: &group{},
	}
}

// forward runs all layers over b.h [rows, H] and leaves the normed hidden states in
// b.n. The positions have no rotation: a learned embedding was added before.
func (d *DepthDecoder) forward(q compute.Queue, b depthBuffers, cache compute.KVCache, at compute.Rows) {
	h, f, n := d.cfg.HiddenSize, d.cfg.IntermediateSize, at.N
	scale := float32(1 / math.Sqrt(float64(h/d.cfg.Heads)))
	x, y := b.views.of(b.h, 0, n*h), b.views.of(b.n, 0, n*h)
	gate, up := b.views.of(b.gate, 0, n*f), b.views.of(b.up, 0, n*f)
	for i, w := range d.layers {
		q.RMSNorm(y, x, w.inputNorm, n, depthEps)
		q.Linear(y, n, b.products.of(
			compute.Linear{Y: b.q, W: w.q},
			compute.Linear{Y: b.k, W: w.k},
			compute.Linear{Y: b.v, W: w.v})...)
		q.AppendKV(compute.AppendKV{Cache: cache, Layer: i, Q: b.q, K: b.k, V: b.v, QHeads: d.cfg.Heads}, at)
		q.CachedAttention(b.o, b.q, cache, i, d.cfg.Heads, scale, at)
		q.Linear(b.o, n, b.products.of(compute.Linear{Y: x, W: w.o, Residual: x})...)

		q.RMSNorm(y, x, w.postNorm, n, depthEps)
		q.Linear(y, n, b.products.of(compute.Linear{Y: gate, W: w.gate}, compute.Linear{Y: up, W: w.up})...)
		q.SwiGLU(gate, gate, up)
		q.Linear(gate, n, b.products.of(compute.Linear{Y: x, W: w.down, Residual: x})...)
	}
	q.RMSNorm(y, x, d.norm, n, depthEps)
}

// kvConfig is a cache with one block, of as many positions as there are codebooks,
// for each row.
func (d *DepthDecoder) kvConfig(rows int) compute.KVConfig {
	return compute.KVConfig{
		Layers: d.cfg.Layers, Heads: d.cfg.Heads, HeadDim: d.cfg.HiddenSize / d.cfg.Heads,
		BlockSize: d.cfg.Codebooks, Blocks: rows, DType: d.dtype,
	}
}
