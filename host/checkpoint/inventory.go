package checkpoint

import (
	"fmt"
	"slices"
)

// Spec is one tensor of the canonical inventory.
type Spec struct {
	Component string
	Name      string
	Shape     []int
	DTypes    []DType // types that are accepted
}

// Names of the components that hold tensors.
const (
	languageModel    = "language_model"
	depthDecoder     = "rvq_depth_decoder"
	conditionEncoder = "condition_encoder"
	transformer      = "transformer"
	vocoder          = "vocoder"
)

// Components lists the components that hold tensors, in the order in which a song
// passes them. They are also the names of their folders.
func Components() []string {
	return []string{languageModel, depthDecoder, conditionEncoder, transformer, vocoder}
}

// floatTypes are the types in which weights are stored.
func floatTypes() []DType { return []DType{F32, BF16, F16, F64, F8E4M3, F8E5M2} }

// Inventory lists every tensor that a checkpoint with this config holds, with the
// names of the diffusers layout, component after component.
func Inventory(c Config) []Spec {
	l := &specList{types: floatTypes()}
	l.languageModel(c.LanguageModel)
	l.depthDecoder(c.DepthDecoder)
	l.conditionEncoder(c.ConditionEncoder)
	l.transformer(c.Transformer)
	l.vocoder(c.Vocoder)
	return l.specs
}

// specList gathers the tensors of one component after another.
type specList struct {
	component string
	types     []DType
	specs     []Spec
}

func (l *specList) add(name string, shape ...int) {
	l.specs = append(l.specs, Spec{Component: l.component, Name: name, Shape: shape, DTypes: slices.Clone(l.types)})
}

func (l *specList) languageModel(m LanguageModel) {
	l.component = languageModel
	l.add("model.embed_tokens.weight", m.VocabSize, m.HiddenSize)
	for i := range m.Layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		attention, mlp := layer+"self_attn.", layer+"mlp."
		l.add(layer+"input_layernorm.weight", m.HiddenSize)
		l.add(attention+"q_proj.weight", m.Heads*m.HeadDim, m.HiddenSize)
		l.add(attention+"k_proj.weight", m.KVHeads*m.HeadDim, m.HiddenSize)
		l.add(attention+"v_proj.weight", m.KVHeads*m.HeadDim, m.HiddenSize)
		l.add(attention+"q_norm.weight", m.HeadDim)
		l.add(attention+"k_norm.weight", m.HeadDim)
		l.add(attention+"o_proj.weight", m.HiddenSize, m.Heads*m.HeadDim)
		l.add(layer+"post_attention_layernorm.weight", m.HiddenSize)
		l.add(mlp+"gate_proj.weight", m.IntermediateSize, m.HiddenSize)
		l.add(mlp+"up_proj.weight", m.IntermediateSize, m.HiddenSize)
		l.add(mlp+"down_proj.weight", m.HiddenSize, m.IntermediateSize)
	}
	l.add("model.norm.weight", m.HiddenSize)
	if !m.TieWordEmbeddings {
		l.add(lmHead, m.VocabSize, m.HiddenSize)
	}
}

func (l *specList) depthDecoder(d DepthDecoder) {
	l.component = depthDecoder
	l.add("audio_embeddings.weight", (d.Codebooks-1)*d.AudioVocabSize, d.HiddenSize)
	l.add("projection.weight", d.HiddenSize, d.HiddenSize)
	l.add("pos_embedding.weight", d.MaxPositions, d.HiddenSize)
	for i := range d.Layers {
		layer := fmt.Sprintf("layers.%d.", i)
		l.add(layer+"input_layernorm.weight", d.HiddenSize)
		for _, name := range []string{"to_q", "to_k", "to_v", "to_out"} {
			l.add(layer+"attn."+name+".weight", d.HiddenSize, d.HiddenSize)
		}
		l.add(layer+"post_attention_layernorm.weight", d.HiddenSize)
		l.add(layer+"gate_proj.weight", d.IntermediateSize, d.HiddenSize)
		l.add(layer+"up_proj.weight", d.IntermediateSize, d.HiddenSize)
		l.add(layer+"down_proj.weight", d.HiddenSize, d.IntermediateSize)
	}
	l.add("norm.weight", d.HiddenSize)
	for i := range d.Codebooks - 1 {
		l.add(fmt.Sprintf("audio_heads.%d.weight", i), d.AudioVocabSize, d.HiddenSize)
	}
}

func (l *specList) conditionEncoder(e ConditionEncoder) {
	const kernel = 3
	l.component = conditionEncoder
	l.add("layer_weight_logits", e.Layers)
	l.add("layer_scale", 1)
	l.add("proj.weight", e.OutDim, e.HiddenDim, kernel)
	l.add("proj.bias", e.OutDim)
}

func (l *specList) transformer(t Transformer) {
	inner := t.Heads * t.HeadDim
	input := 2*t.InChannels + t.ConditionDim // latents, as many zeros, condition
	linear := func(name string, out, in int) {
		l.add(name+".weight", out, in)
		l.add(name+".bias", out)
	}
	norm := func(name string) {
		l.add(name+".weight", inner)
		l.add(name+".bias", inner)
	}
	l.component = transformer
	l.add("time_proj.weight", t.FourierDim/2, 1)
	linear("time_embed.linear_1", inner, t.FourierDim)
	linear("time_embed.linear_2", inner, inner)
	l.add("preprocess_conv.weight", input, input, 1)
	l.add("proj_in.weight", inner, input)
	for i := range t.Layers {
		block := fmt.Sprintf("transformer_blocks.%d.", i)
		norm(block + "norm1")
		for _, name := range []string{"to_q", "to_k", "to_v", "to_out.0"} {
			l.add(block+"attn."+name+".weight", inner, inner)
		}
		norm(block + "norm2")
		linear(block+"ff_in", 2*t.FFInnerDim, inner)
		linear(block+"ff_out", inner, t.FFInnerDim)
	}
	l.add("proj_out.weight", t.InChannels, inner)
	l.add("postprocess_conv.weight", t.InChannels, t.InChannels, 1)
}

func (l *specList) vocoder(v Vocoder) {
	const kernel = 7
	// Weight norm keeps a direction and a length for each index of the first
	// dimension, which in a transposed convolution is the input channel.
	conv := func(name string, first, second, kernel, bias int) {
		l.add(name+".weight_g", first, 1, 1)
		l.add(name+".weight_v", first, second, kernel)
		l.add(name+".bias", bias)
	}
	snake := func(name string, channels int) { l.add(name+".alpha", 1, channels, 1) }

	l.component = vocoder
	l.add("dec_in_proj.weight", v.DecoderInputDim, v.LatentChannels/2, 1)
	l.add("dec_in_proj.bias", v.DecoderInputDim)
	channels := v.DecoderHiddenDim
	conv("conv_in", channels, v.DecoderInputDim, kernel, channels)
	for b, ratio := range v.UpsamplingRatios {
		block := fmt.Sprintf("blocks.%d.", b)
		in, out := channels, v.DecoderHiddenDim>>(b+1)
		snake(block+"snake1", in)
		conv(block+"conv_t1", in, out, 2*ratio, out)
		for n := 1; n <= 3; n++ {
			unit := fmt.Sprintf("%sres_unit%d.", block, n)
			snake(unit+"snake1", out)
			conv(unit+"conv1", out, out, kernel, out)
			snake(unit+"snake2", out)
			conv(unit+"conv2", out, out, 1, out)
		}
		channels = out
	}
	snake("snake_out", channels)
	conv("conv_out", 1, channels, kernel, 1)
}
