package music3

import (
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// ConditionEncoder turns the hidden states of frames into a condition on the latent
// timeline. N is the number of mixed layers (the codebooks), H the hidden size, C the
// condition's width.
type ConditionEncoder struct {
	cfg     checkpoint.ConditionEncoder
	dtype   compute.DType
	weights []float32 // softmax of the layers' logits, rounded to dtype
	scale   float32
	proj    compute.Weight // [C, H, taps]
	bias    compute.Weight // [C]
	taps    int
}

func loadConditionEncoder(l *loader, cfg checkpoint.ConditionEncoder, dtype compute.DType) *ConditionEncoder {
	l.component = "condition_encoder"
	e := &ConditionEncoder{cfg: cfg, dtype: dtype}
	e.weights = softmax(l.floats("layer_weight_logits", dtype))
	if dtype == compute.BF16 {
		roundAll(e.weights)
	}
	if s := l.floats("layer_scale", dtype); len(s) > 0 {
		e.scale = s[0]
	}
	e.proj = l.weight("proj.weight", compute.UseConv, dtype)
	e.bias = l.weight("proj.bias", compute.UseVector, dtype)
	if l.err == nil {
		e.taps = e.proj.Shape()[2]
	}
	return e
}

func softmax(v []float32) []float32 {
	top := float32(math.Inf(-1))
	for _, x := range v {
		top = max(top, x)
	}
	out, sum := make([]float32, len(v)), float32(0)
	for i, x := range v {
		out[i] = float32(math.Exp(float64(x - top)))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// Latents is the number of latent frames that n frames become. The order of the
// operations is the reference's, in double precision.
func Latents(c checkpoint.ConditionEncoder, n int) int {
	x := float64(n) * float64(c.OutputSamplingRate) / float64(c.InputSamplingRate)
	x = x * float64(c.InputHopLength) / float64(c.OutputHopLength)
	return max(1, int(x))
}

// conditionBuffers is the working memory for n frames and L latents.
type conditionBuffers struct {
	frames, mixed, projected, resized compute.Buffer // [n, N*H], [n, H], [n, C], [L, C]
}

func (e *ConditionEncoder) newBuffers(a *allocator, n int) conditionBuffers {
	c := e.cfg
	return conditionBuffers{
		frames: a.buffer(e.dtype, n*c.Layers*c.HiddenDim), mixed: a.buffer(e.dtype, n*c.HiddenDim),
		projected: a.buffer(e.dtype, n*c.OutDim), resized: a.buffer(e.dtype, Latents(c, n)*c.OutDim),
	}
}

// forward computes the condition [L, C] of n frames whose hidden states lie in
// b.frames, and stores it, in the type of the acoustic half, in cond.
func (e *ConditionEncoder) forward(q compute.Queue, cond compute.Buffer, b conditionBuffers, n int) {
	c, length := e.cfg, Latents(e.cfg, n)
	q.MixLayers(b.mixed, b.frames, n, c.HiddenDim, e.weights, e.scale)
	q.Conv1D(b.projected, b.mixed, compute.Conv{
		Batch: 1, Length: n, W: e.proj, Bias: e.bias, Stride: 1, Dilation: 1, Pad: (e.taps - 1) / 2,
	})
	resized := b.resized.Slice(0, length*c.OutDim)
	q.NearestRows(resized, length, b.projected, n, c.OutDim)
	q.Copy(cond, resized)
}
