package music3

import (
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// LanguageModel is the Qwen3 decoder over frames: token or frame embeddings in, one
// post-norm hidden state [hidden] per row out. H is the hidden size, Q and K the
// query and key heads, D the head dimension, F the inner size.
type LanguageModel struct {
	cfg   checkpoint.LanguageModel
	dtype compute.DType

	text   compute.Weight // [vocab, H], for prompts
	audio  compute.Weight // [codes, H], the rows of text that frames feed back
	layers []lmLayer
	norm   compute.Weight // [H]
	codes  compute.Weight // [codes, H], the head's rows that can be sampled
	end    compute.Weight // [1, H], and the end token's
	rope   compute.RopeTable
}

type lmLayer struct {
	inputNorm, postNorm compute.Weight // [H]
	q, k, v, o          compute.Weight // [Q*D, H], [K*D, H], [K*D, H], [H, Q*D]
	qNorm, kNorm        compute.Weight // [D]
	gate, up, down      compute.Weight // [F, H], [F, H], [H, F]
}

func loadLanguageModel(l *loader, a *allocator, cfg checkpoint.LanguageModel, dtype compute.DType) *LanguageModel {
	l.component = "language_model"
	m := &LanguageModel{cfg: cfg, dtype: dtype}
	lo, hi := cfg.AudioCodeOffset, cfg.AudioCodeOffset+cfg.AudioCodebookSize
	table := l.tensor("model.embed_tokens.weight")
	m.text = l.put(table, compute.UseColdTable, dtype)
	m.audio = l.put(rows(table, lo, hi), compute.UseTable, dtype)
	for i := range cfg.Layers {
		name := func(s string) string { return fmt.Sprintf("model.layers.%d.%s.weight", i, s) }
		m.layers = append(m.layers, lmLayer{
			inputNorm: l.weight(name("input_layernorm"), compute.UseVector, dtype),
			postNorm:  l.weight(name("post_attention_layernorm"), compute.UseVector, dtype),
			q:         l.weight(name("self_attn.q_proj"), compute.UseLinear, dtype),
			k:         l.weight(name("self_attn.k_proj"), compute.UseLinear, dtype),
			v:         l.weight(name("self_attn.v_proj"), compute.UseLinear, dtype),
			o:         l.weight(name("self_attn.o_proj"), compute.UseLinear, dtype),
			qNorm:     l.weight(name("self_attn.q_norm"), compute.UseVector, dtype),
			kNorm:     l.weight(name("self_attn.k_norm"), compute.UseVector, dtype),
			gate:      l.weight(name("mlp.gate_proj"), compute.UseLinear, dtype),
			up:        l.weight(name("mlp.up_proj"), compute.UseLinear, dtype),
			down:      l.weight(name("mlp.down_proj"), compute.UseLinear, dtype),
		})
	}
	m.norm = l.weight("model.norm.weight", compute.UseVector, dtype)
	head := table
	if !cfg.TieWordEmbeddings {
		head = l.tensor("lm_head.weight")
	}
	m.codes = l.put(rows(head, lo, hi), compute.UseLinear, dtype)
	m.end = l.put(rows(head, cfg.AudioEndID, cfg.AudioEndID+1), compute.UseLinear, dtype)
	m.rope = makeRope(a, cfg.MaxPositions, cfg.HeadDim, cfg.RopeTheta, dtype)
	return m
}

// makeRope tabulates cos and sin of p * theta^(-2i/dim) for positions 0 to n-1. Each
// step is rounded to float32 as in the reference: the exponent, the power, its
// reciprocal, the angle.
func makeRope(a *allocator, n, dim int, theta float64, dtype compute.DType) compute.RopeTable {
	half := dim / 2
	cos, sin := make([]float32, n*half), make([]float32, n*half)
	for i := range half {
		exponent := float32(2*i) / float32(dim)
		inverse := 1 / float32(math.Pow(theta, float64(exponent)))
		for p := range n {
			s, c := math.Sincos(float64(float32(p) * inverse))
			cos[p*half+i], sin[p*half+i] = float32(c), float32(s)
		}
	}
	return compute.RopeTable{Cos: a.upload(dtype, cos), Sin: a.upload(dtype, sin), Dim: dim}
}

// lmBuffers is the working memory of a pass over up to `rows` rows.
type lmBuffers struct {
	h, n, q, k, v, o, gate, up compute.Buffer
	products                   *group
}

func (m *LanguageModel) newBuffers(a *allocator, rows int) lmBuffers {
	c := m.cfg
	get := func(width int) compute.Buffer { return a.buffer(m.dtype, rows*width) }
	return lmBuffers{
		h: get(c.HiddenSize), n: get(c.HiddenSize),
		q: get(c.Heads * c.HeadDim), k: get(c.KVHeads * c.HeadDim), v: get(c.KVHeads * c.HeadDim), o: get(c.Heads * c.HeadDim),
		gate: get(c.IntermediateSize), up: get(c.IntermediateSize),
		products: &group{},
	}
}

// cut returns the same memory for fewer rows.
func (b lmBuffers) cut(c checkpoint.LanguageModel, rows int) lmBuffers {
	return lmBuffers{
		h: b.h.Slice(0, rows*c.HiddenSize), n: b.n.Slice(0, rows*c.HiddenSize),
		q: b.q.Slice(0, rows*c.Heads*c.HeadDim), k: b.k.Slice(0, rows*c.KVHeads*c.HeadDim), v: b.v.Slice(0, rows*c.KVHeads*c.HeadDim), o: b.o.Slice(0, rows*c.Heads*c.HeadDim),
		gate: b.gate.Slice(0, rows*c.IntermediateSize), up: b.up.Slice(0, rows*c.IntermediateSize),
		products: b.products,
	}
}

// forward runs all layers over b.h [rows, H], embeddings on entry, and leaves the
// post-norm hidden states in b.n. Keys and values of the rows enter the cache.
func (m *LanguageModel) forward(q compute.Queue, b lmBuffers, cache compute.KVCache, at compute.Rows) {
	c, eps := m.cfg, float32(m.cfg.RMSNormEps)
	scale := float32(1 / math.Sqrt(float64(c.HeadDim)))
	for i, w := range m.layers {
		q.RMSNorm(b.n, b.h, w.inputNorm, at.N, eps)
		q.Linear(b.n, at.N, b.products.of(
			compute.Linear{Y: b.q, W: w.q},
			compute.Linear{Y: b.k, W: w.k},
			compute.Linear{Y: b.v, W: w.v})...)
		q.AppendKV(compute.AppendKV{
			Cache: cache, Layer: i, Q: b.q, K: b.k, V: b.v, QHeads: c.Heads,
			QNorm: w.qNorm, KNorm: w.kNorm, Eps: eps, Rope: m.rope,
		}, at)
		q.CachedAttention(b.o, b.q, cache, i, c.Heads, scale, at)
		q.Linear(b.o, at.N, b.products.of(compute.Linear{Y: b.h, W: w.o, Residual: b.h})...)

		q.RMSNorm(b.n, b.h, w.postNorm, at.N, eps)
		q.Linear(b.n, at.N, b.products.of(
			compute.Linear{Y: b.gate, W: w.gate},
			compute.Linear{Y: b.up, W: w.up})...)
		q.SwiGLU(b.gate, b.gate, b.up)
		q.Linear(b.gate, at.N, b.products.of(compute.Linear{Y: b.h, W: w.down, Residual: b.h})...)
	}
	q.RMSNorm(b.n, b.h, m.norm, at.N, eps)
}

// head computes the logits that can be sampled: the semantic codes in order, then the
// end token. codes and end are the columns of both in logits [rows, codes+1].
func (m *LanguageModel) head(q compute.Queue, codes, end, hidden compute.Buffer, rows int, products *group) {
	stride := m.cfg.AudioCodebookSize + 1
	q.Linear(hidden, rows, products.of(
		compute.Linear{Y: codes, Stride: stride, W: m.codes},
		compute.Linear{Y: end, Stride: stride, W: m.end})...)
}

// kvConfig is a cache of this model with the given number of blocks.
func (m *LanguageModel) kvConfig(blocks int) compute.KVConfig {
	return compute.KVConfig{
		Layers: m.cfg.Layers, Heads: m.cfg.KVHeads, HeadDim: m.cfg.HeadDim,
		BlockSize: kvBlockSize, Blocks: blocks, DType: m.dtype,
	}
}
