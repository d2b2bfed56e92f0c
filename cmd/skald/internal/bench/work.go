package bench

import "skald/host/checkpoint"

// The useful arithmetic and bytes of each stage; a multiply-add counts as two FLOP. Keys
// and values are cached, attention is the causal triangle, weights are read once a pass.

// lmLayer counts the weights of one layer of the language model.
func lmLayer(c checkpoint.LanguageModel) float64 {
	h, q, kv := c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return float64(2*h*q + 2*h*kv + 3*h*c.IntermediateSize)
}

func decodeFLOP(c checkpoint.LanguageModel, rows, kv int) float64 {
	return float64(rows*c.Layers) * (2*lmLayer(c) + float64(4*c.Heads*c.HeadDim*(kv+1)))
}

func decodeBytes(c checkpoint.LanguageModel, rows, kv, size int) float64 {
	return float64(c.Layers) * (lmLayer(c) + float64(rows*kv*2*c.KVHeads*c.HeadDim)) * float64(size)
}

func prefillFLOP(c checkpoint.LanguageModel, rows, n int) float64 {
	return float64(rows*c.Layers) * (2*lmLayer(c)*float64(n) + float64(4*c.Heads*c.HeadDim*(n*(n+1)/2)))
}

func headFLOP(c checkpoint.LanguageModel, rows, ids int) float64 {
	return float64(2 * rows * ids * c.HiddenSize)
}

func depthLayer(c checkpoint.DepthDecoder) float64 {
	return float64(4*c.HiddenSize*c.HiddenSize + 3*c.HiddenSize*c.IntermediateSize)
}

func depthFLOP(c checkpoint.DepthDecoder, rows int) float64 {
	h := float64(c.HiddenSize)
	return float64(rows) * (float64(c.Codebooks)*2*(float64(c.Layers)*depthLayer(c)+h*h) +
		float64(c.Codebooks-1)*2*h*float64(c.AudioVocabSize))
}

// depthBytes counts codebooks-1 passes over the layers: the first two positions share one.
func depthBytes(c checkpoint.DepthDecoder, size int) float64 {
	h, passes := float64(c.HiddenSize), float64(c.Codebooks-1)
	return (passes*(float64(c.Layers)*depthLayer(c)+h*float64(c.AudioVocabSize)) + float64(c.Codebooks)*h*h) * float64(size)
}

func flowLayer(c checkpoint.Transformer) float64 {
	d := c.Heads * c.HeadDim
	return float64(4*d*d + 3*d*c.FFInnerDim)
}

func flowFLOP(c checkpoint.Transformer, rows, latents int) float64 {
	d, n := float64(c.Heads*c.HeadDim), float64(latents+1)
	layer := 2*flowLayer(c)*n + 4*d*n*n
	ends := 2 * float64(latents) * d * float64(2*c.InChannels+c.ConditionDim)
	return float64(rows) * (float64(c.Layers)*layer + ends)
}

func flowBytes(c checkpoint.Transformer, size int) float64 {
	return float64(c.Layers) * flowLayer(c) * float64(size)
}

func conditionFLOP(c checkpoint.ConditionEncoder, frames int) float64 {
	return float64(2*frames*c.HiddenDim*c.OutDim*3 + 2*c.Layers*c.HiddenDim*frames)
}

func conditionBytes(c checkpoint.ConditionEncoder, size int) float64 {
	return float64(c.HiddenDim * c.OutDim * 3 * size)
}

// vocoderFLOP counts both streams.
func vocoderFLOP(v checkpoint.Vocoder, latents int) float64 {
	c, t := float64(v.DecoderHiddenDim), float64(latents)
	n := 2 * t * (float64(v.LatentChannels/2*v.DecoderInputDim) + float64(v.DecoderInputDim)*c*7)
	for _, s := range v.UpsamplingRatios {
		n += 2 * t * c * (c / 2) * 2 * float64(s)
		c, t = c/2, t*float64(s)
		n += 3 * 2 * t * c * c * (7 + 1)
	}
	return 2 * (n + 2*t*c*7)
}
