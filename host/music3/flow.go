package music3

import (
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// What the reference fixes for the flow transformer, in code.
const (
	layerNormEps = 1e-5
	flowTheta    = 10000.0 // of its rotary embedding
)

// FlowTransformer predicts the velocity of a window's latents. X is the number of
// latent channels, C the condition's width, D the inner width, F the feed-forward's
// inner size, E the width of the time embedding, L the latents of a window. Its
// sequence is one time token and L latents.
type FlowTransformer struct {
	cfg   checkpoint.Transformer
	dtype compute.DType

	timeFrequencies []float32 // [E/2]
	time1, time2    compute.Weight
	time1Bias       compute.Weight
	time2Bias       compute.Weight
	inLatent        compute.Weight // [D, X], folded
	inCondition     compute.Weight // [D, C], folded
	out             compute.Weight // [X, D], folded
	blocks          []flowBlock
}

type flowBlock struct {
	norm1, norm1Bias compute.Weight // [D]
	norm2, norm2Bias compute.Weight // [D]
	q, k, v, o       compute.Weight // [D, D]
	ffIn, ffInBias   compute.Weight // [2F, D], [2F]: value rows, then gate rows
	ffOut, ffOutBias compute.Weight // [D, F], [D]
}

func loadFlowTransformer(l *loader, a *allocator, cfg checkpoint.Transformer, dtype compute.DType) *FlowTransformer {
	l.component = "transformer"
	f := &FlowTransformer{cfg: cfg, dtype: dtype}
	f.timeFrequencies = l.floats("time_proj.weight", dtype)
	f.time1 = l.weight("time_embed.linear_1.weight", compute.UseLinear, dtype)
	f.time1Bias = l.weight("time_embed.linear_1.bias", compute.UseVector, dtype)
	f.time2 = l.weight("time_embed.linear_2.weight", compute.UseLinear, dtype)
	f.time2Bias = l.weight("time_embed.linear_2.bias", compute.UseVector, dtype)
	f.foldInput(l, a)
	for i := range cfg.Layers {
		load := func(s string, use compute.Use) compute.Weight {
			return l.weight(fmt.Sprintf("transformer_blocks.%d.%s", i, s), use, dtype)
		}
		f.blocks = append(f.blocks, flowBlock{
			norm1: load("norm1.weight", compute.UseVector), norm1Bias: load("norm1.bias", compute.UseVector),
			norm2: load("norm2.weight", compute.UseVector), norm2Bias: load("norm2.bias", compute.UseVector),
			q: load("attn.to_q.weight", compute.UseLinear), k: load("attn.to_k.weight", compute.UseLinear),
			v: load("attn.to_v.weight", compute.UseLinear), o: load("attn.to_out.0.weight", compute.UseLinear),
			ffIn: load("ff_in.weight", compute.UseLinear), ffInBias: load("ff_in.bias", compute.UseVector),
			ffOut: load("ff_out.weight", compute.UseLinear), ffOutBias: load("ff_out.bias", compute.UseVector),
		})
	}
	f.foldOutput(l, a)
	return f
}

// foldInput computes W (P + I), where P is the 1x1 convolution before the input
// projection W, and keeps its latent and condition columns: the channels between are
// always zero.
func (f *FlowTransformer) foldInput(l *loader, a *allocator) {
	x, d := f.cfg.InChannels, f.cfg.Heads*f.cfg.HeadDim
	width := 2*x + f.cfg.ConditionDim
	p, w := l.floats("preprocess_conv.weight", f.dtype), l.floats("proj_in.weight", f.dtype)
	if l.err != nil {
		return
	}
	folded := foldResidual(l, a, w, d, p, width)
	latent, condition := make([]float32, 0, d*x), make([]float32, 0, d*f.cfg.ConditionDim)
	for i := range len(folded) / width {
		row := folded[i*width : (i+1)*width]
		latent, condition = append(latent, row[:x]...), append(condition, row[2*x:]...)
	}
	f.inLatent = l.putMade(fromFloats("transformer.proj_in (latents)", latent, d, x), compute.UseLinear, f.dtype)
	f.inCondition = l.putMade(fromFloats("transformer.proj_in (condition)", condition, d, f.cfg.ConditionDim), compute.UseLinear, f.dtype)
}

// foldOutput computes (Q + I) W, where Q is the 1x1 convolution after the output
// projection W: the transpose of W^T (Q^T + I).
func (f *FlowTransformer) foldOutput(l *loader, a *allocator) {
	x, d := f.cfg.InChannels, f.cfg.Heads*f.cfg.HeadDim
	w, q := l.floats("proj_out.weight", f.dtype), l.floats("postprocess_conv.weight", f.dtype)
	if l.err != nil {
		return
	}
	folded := foldResidual(l, a, transpose(w, x, d), d, transpose(q, x, x), x)
	if l.err != nil {
		return
	}
	f.out = l.putMade(fromFloats("transformer.proj_out (folded)", transpose(folded, d, x), x, d), compute.UseLinear, f.dtype)
}

// foldResidual returns w p + w for w [rows, n] and p [n, n], computed by the device in
// float32.
func foldResidual(l *loader, a *allocator, w []float32, rows int, p []float32, n int) []float32 {
	if l.counting != nil {
		return w
	}
	weight, err := l.dev.Load(fromFloats("fold", transpose(p, n, n), n, n), compute.UseLinear, compute.F32)
	if err != nil {
		l.err = err
		return nil
	}
	in, out := a.upload(compute.F32, w), a.buffer(compute.F32, rows*n)
	if a.err != nil {
		l.err = a.err
		return nil
	}
	defer in.Free()
	defer out.Free()
	q, err := l.dev.NewQueue()
	if err != nil {
		l.err = err
		return nil
	}
	defer q.Close()
	q.Linear(in, rows, compute.Linear{Y: out, W: weight, Residual: in})
	folded := make([]float32, rows*n)
	if err := q.Download(folded, out); err != nil {
		l.err = err
		return nil
	}
	return folded
}

// transpose returns the [cols, rows] transpose of v [rows, cols].
func transpose(v []float32, rows, cols int) []float32 {
	out := make([]float32, len(v))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = v[i*cols+j]
		}
	}
	return out
}

// flowBuffers is the working memory of a window of L latents and a batch of one or
// two: the conditional pass, and the unconditional one where guidance needs it.
type flowBuffers struct {
	length, batch int

	x, noise, carry       compute.Buffer // [L, X]
	cond                  compute.Buffer // [L, C]
	condIn                compute.Buffer // [L, D], the condition's share of the input
	times                 compute.Buffer // [steps, D], time tokens
	h, n, q, k, v, o      compute.Buffer // [batch, 1+L, D]
	ff                    compute.Buffer // [batch*(1+L), 2F]
	gated                 compute.Buffer // [batch*(1+L), F]
	velocity, velocityNil compute.Buffer // [L, X], with and without condition
	rope                  compute.RopeTable
	finite                compute.Buffer // I32 [1]

	views    views
	products group
}

func (f *FlowTransformer) newBuffers(a *allocator, length, batch, steps int) *flowBuffers {
	c, d := f.cfg, f.cfg.Heads*f.cfg.HeadDim
	get := func(n int) compute.Buffer { return a.buffer(f.dtype, n) }
	tokens := batch * (1 + length)
	return &flowBuffers{
		length: length, batch: batch,
		x: get(length * c.InChannels), noise: get(length * c.InChannels), carry: get(length * c.InChannels),
		cond: get(length * c.ConditionDim), condIn: get(length * d), times: get(steps * d),
		h: get(tokens * d), n: get(tokens * d), q: get(tokens * d), k: get(tokens * d), v: get(tokens * d), o: get(tokens * d),
		ff: get(tokens * 2 * c.FFInnerDim), gated: get(tokens * c.FFInnerDim),
		velocity: get(length * c.InChannels), velocityNil: get(length * c.InChannels),
		rope:   makeRope(a, 1+length, c.RotaryDim, flowTheta, f.dtype),
		finite: a.buffer(compute.I32, 1),
		views:  views{},
	}
}

func (b *flowBuffers) free() {
	for _, x := range []compute.Buffer{b.x, b.noise, b.carry, b.cond, b.condIn, b.times, b.h, b.n, b.q, b.k, b.v, b.o, b.ff, b.gated, b.velocity, b.velocityNil, b.rope.Cos, b.rope.Sin, b.finite} {
		if x != nil {
			x.Free()
		}
	}
}

// timeFeatures are the sines and cosines [steps, E] of the angles 2*pi*t*w, each
// product rounded to the run's type.
func (f *FlowTransformer) timeFeatures(steps []eulerStep) []float32 {
	half := len(f.timeFrequencies)
	store := func(x float32) float32 { return x }
	if f.dtype == compute.BF16 {
		store = round
	}
	features := make([]float32, 2*half*len(steps))
	for k, s := range steps {
		turn := store(float32(2*math.Pi) * s.t)
		for i, w := range f.timeFrequencies {
			sin, cos := math.Sincos(float64(store(turn * w)))
			features[k*2*half+i], features[k*2*half+half+i] = store(float32(cos)), store(float32(sin))
		}
	}
	return features
}

// timeTokens computes the time token of every step into b.times: linear, SiLU, linear
// over the time features.
func (f *FlowTransformer) timeTokens(q compute.Queue, a *allocator, b *flowBuffers, steps []eulerStep) error {
	d := f.cfg.Heads * f.cfg.HeadDim
	in, mid := a.upload(f.dtype, f.timeFeatures(steps)), a.buffer(f.dtype, len(steps)*d)
	if a.err != nil {
		return a.err
	}
	defer in.Free()
	defer mid.Free()
	q.Linear(in, len(steps), compute.Linear{Y: mid, W: f.time1, Bias: f.time1Bias})
	q.SiLU(mid, mid)
	q.Linear(mid, len(steps), compute.Linear{Y: b.times, W: f.time2, Bias: f.time2Bias})
	return q.Sync()
}

// setCondition computes the condition's share of the input projection, which is the
// same at every step of a window.
func (f *FlowTransformer) setCondition(q compute.Queue, b *flowBuffers) {
	q.Linear(b.cond, b.length, compute.Linear{Y: b.condIn, W: f.inCondition})
}

// forward predicts the velocities of b.x at the time of token `step`: b.velocity with
// the condition, and in a batch of two b.velocityNil without.
func (f *FlowTransformer) forward(q compute.Queue, b *flowBuffers, step int) {
	d := f.cfg.Heads * f.cfg.HeadDim
	tokens, row := 1+b.length, func(x compute.Buffer, lo, hi int) compute.Buffer { return b.views.of(x, lo*d, hi*d) }

	// Sequence 0 is conditional, sequence 1 unconditional: a condition of zeros.
	last := b.batch - 1
	latents := row(b.h, last*tokens+1, (last+1)*tokens)
	q.Linear(b.x, b.length, b.products.of(compute.Linear{Y: latents, W: f.inLatent})...)
	q.Add(row(b.h, 1, tokens), latents, b.condIn)
	for i := range b.batch {
		q.Copy(row(b.h, i*tokens, i*tokens+1), row(b.times, step, step+1))
	}

	for _, w := range f.blocks {
		f.attend(q, b, w)
		q.Linear(b.o, b.batch*tokens, b.products.of(compute.Linear{Y: b.h, W: w.o, Residual: b.h})...)
		f.feedForward(q, b, w)
	}

	q.Linear(row(b.h, 1, tokens), b.length, b.products.of(compute.Linear{Y: b.velocity, W: f.out})...)
	if b.batch == 2 {
		q.Linear(row(b.h, tokens+1, 2*tokens), b.length, b.products.of(compute.Linear{Y: b.velocityNil, W: f.out})...)
	}
}

// attend is a block's attention without its output projection: norm, rotation and
// attention of b.h into b.o.
func (f *FlowTransformer) attend(q compute.Queue, b *flowBuffers, w flowBlock) {
	tokens, heads, headDim := 1+b.length, f.cfg.Heads, f.cfg.HeadDim
	q.LayerNorm(b.n, b.h, w.norm1, w.norm1Bias, b.batch*tokens, layerNormEps)
	q.Linear(b.n, b.batch*tokens, b.products.of(
		compute.Linear{Y: b.q, W: w.q},
		compute.Linear{Y: b.k, W: w.k},
		compute.Linear{Y: b.v, W: w.v})...)
	q.Rope(b.q, b.batch, tokens, heads, headDim, b.rope)
	q.Rope(b.k, b.batch, tokens, heads, headDim, b.rope)
	q.FullAttention(b.o, b.q, b.k, b.v, b.batch, tokens, heads, headDim, float32(1/math.Sqrt(float64(headDim))))
}

// feedForward adds a block's gated feed-forward to b.h.
func (f *FlowTransformer) feedForward(q compute.Queue, b *flowBuffers, w flowBlock) {
	n := b.batch * (1 + b.length)
	q.LayerNorm(b.n, b.h, w.norm2, w.norm2Bias, n, layerNormEps)
	q.Linear(b.n, n, b.products.of(compute.Linear{Y: b.ff, W: w.ffIn, Bias: w.ffInBias})...)
	q.ValueSiLU(b.gated, b.ff, n)
	q.Linear(b.gated, n, b.products.of(compute.Linear{Y: b.h, W: w.ffOut, Bias: w.ffOutBias, Residual: b.h})...)
}
