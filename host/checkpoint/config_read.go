package checkpoint

import (
	"fmt"
	"strconv"
)

// Bounds of what a config may say. They are far above any model of this kind and
// keep every product of sizes, and the inventory, small enough to handle.
const (
	maxDim    = 1 << 20 // channels, heads, hidden sizes
	maxVocab  = 1 << 24
	maxLayers = 1 << 10
	maxRate   = 1 << 24 // sampling rates, hop lengths, positions
)

// Files of the settings, relative to the checkpoint.
const (
	languageModelConfig    = "language_model/config.json"
	depthDecoderConfig     = "rvq_depth_decoder/config.json"
	conditionEncoderConfig = "condition_encoder/config.json"
	transformerConfig      = "transformer/config.json"
	vocoderConfig          = "vocoder/config.json"
	schedulerConfig        = "scheduler/scheduler_config.json"
)

// Names by which a config says what it belongs to.
const (
	qwen3                 = "qwen3"
	silu                  = "silu"
	pipelineClass         = "MiniMaxMusic3ModularPipeline"
	depthDecoderClass     = "MiniMaxMusic3RVQDepthDecoder"
	conditionEncoderClass = "MiniMaxMusic3ConditionEncoder"
	transformerClass      = "MiniMaxMusic3Transformer1DModel"
	vocoderClass          = "MiniMaxMusic3Vocoder"
	schedulerClass        = "FlowMatchEulerDiscreteScheduler"
)

// readConfig reads the settings of every component through read, which gives a
// file's bytes, and checks that they fit each other. The error lists everything
// that is wrong.
func readConfig(read func(file string) ([]byte, error)) (Config, error) {
	var c Config
	var report problems
	for _, part := range []struct {
		file string
		read func(*object)
	}{
		{languageModelConfig, c.LanguageModel.read},
		{depthDecoderConfig, c.DepthDecoder.read},
		{conditionEncoderConfig, c.ConditionEncoder.read},
		{transformerConfig, c.Transformer.read},
		{vocoderConfig, c.Vocoder.read},
		{schedulerConfig, c.Scheduler.read},
	} {
		data, err := read(part.file)
		if err != nil {
			report.include(err)
			continue
		}
		o, err := parseObject(part.file, data, &report)
		if err != nil {
			report.include(err)
			continue
		}
		part.read(o)
	}
	if err := report.err(); err != nil {
		return Config{}, err
	}
	c.check(&report)
	return c, report.err()
}

// required as a default makes a missing key a problem.
const required = -1

func (m *LanguageModel) read(o *object) {
	o.refuseQuantization()
	if kind := o.text("model_type"); kind != "" && kind != qwen3 {
		o.report.add("%s: model_type is %q, expected %s", o.file, clip(kind), qwen3)
	}
	if act := o.text("hidden_act"); act != "" && act != silu {
		o.report.add("%s: hidden_act is %q, expected %s", o.file, clip(act), silu)
	}
	if o.flag("attention_bias", false) {
		o.report.add("%s: attention_bias is true: biases in the attention are not supported", o.file)
	}
	if o.flag("use_sliding_window", false) {
		o.report.add("%s: use_sliding_window is true: only full attention is supported", o.file)
	}
	for _, kind := range o.array("layer_types") {
		if string(kind) != `"full_attention"` {
			o.report.add("%s: layer_types has %s: only full_attention is supported", o.file, shorten(kind))
			break
		}
	}
	m.VocabSize = o.integer("vocab_size", required, 1, maxVocab)
	m.HiddenSize = o.integer("hidden_size", required, 1, maxDim)
	m.Layers = o.integer("num_hidden_layers", required, 1, maxLayers)
	m.Heads = o.integer("num_attention_heads", required, 1, maxDim)
	m.KVHeads = o.integer("num_key_value_heads", max(m.Heads, 1), 1, maxDim)
	m.HeadDim = o.integer("head_dim", max(m.HiddenSize/max(m.Heads, 1), 1), 1, maxDim)
	m.IntermediateSize = o.integer("intermediate_size", required, 1, maxDim)
	m.MaxPositions = o.integer("max_position_embeddings", required, 1, maxRate)
	m.RMSNormEps = o.number("rms_norm_eps", 1e-6, 0, 1)
	m.TieWordEmbeddings = o.flag("tie_word_embeddings", false)
	m.readRope(o)
	m.AudioEndID = o.integer("audio_end_token_id", 151670, 0, maxVocab)
	m.AudioCFGID = o.integer("audio_cfg_token_id", 151654, 0, maxVocab)
	m.AudioCodeOffset = o.integer("audio_code_offset", 151675, 0, maxVocab)
	m.AudioCodebookSize = o.integer("audio_codebook_size", 16384, 1, maxVocab)
}

// readRope reads the rotary embedding, which older configs keep in rope_theta and
// rope_scaling and newer ones in rope_parameters.
func (m *LanguageModel) readRope(o *object) {
	const low, high = 1, 1e12
	theta := o
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		rope := o.child(key)
		if rope == nil {
			continue
		}
		for _, name := range []string{"rope_type", "type"} {
			if kind := rope.text(name); kind != "" && kind != "default" {
				o.report.add("%s: %s.%s is %q: only the default rotary embedding is supported",
					o.file, key, name, clip(kind))
			}
		}
		rope.refusePartialRotary()
		if _, ok := rope.get("rope_theta"); ok {
			theta = rope
		}
	}
	o.refusePartialRotary()
	m.RopeTheta = theta.number("rope_theta", required, low, high)
}

// refusePartialRotary reports heads that rotate in part only.
func (o *object) refusePartialRotary() {
	if o.number("partial_rotary_factor", 1, 0, 1) != 1 {
		o.report.add("%s: %spartial_rotary_factor is not 1: the language model's heads must rotate as a whole",
			o.file, o.within)
	}
}

// refuseQuantization reports weights that need more than their tensors.
func (o *object) refuseQuantization() {
	for _, key := range []string{"quantization", "quantization_config"} {
		if value, ok := o.get(key); ok {
			o.report.add("%s: %s is %s: quantised weights (as MLX packs them) are not supported yet",
				o.file, key, shorten(value))
		}
	}
}

// expectClass reports the config of another model.
func (o *object) expectClass(class string) {
	o.refuseQuantization()
	if found := o.text("_class_name"); found != "" && found != class {
		o.report.add("%s: _class_name is %q, expected %s", o.file, clip(found), class)
	}
}

// The defaults below are those of the constructors in diffusers, which apply to a
// key that a config leaves out.

func (d *DepthDecoder) read(o *object) {
	o.expectClass(depthDecoderClass)
	d.HiddenSize = o.integer("hidden_size", 4096, 1, maxDim)
	d.Layers = o.integer("num_layers", 4, 1, maxLayers)
	d.Heads = o.integer("num_attention_heads", 16, 1, maxDim)
	d.IntermediateSize = o.integer("intermediate_size", 6144, 1, maxDim)
	d.AudioVocabSize = o.integer("audio_vocab_size", 1024, 1, maxVocab)
	d.Codebooks = o.integer("num_codebooks", 8, 2, maxLayers)
	d.MaxPositions = o.integer("max_position_embeddings", 16, 1, maxDim)
}

func (e *ConditionEncoder) read(o *object) {
	o.expectClass(conditionEncoderClass)
	e.HiddenDim = o.integer("condition_hidden_dim", 4096, 1, maxDim)
	e.Layers = o.integer("num_condition_layers", 8, 1, maxLayers)
	e.OutDim = o.integer("out_dim", 2048, 1, maxDim)
	e.InputSamplingRate = o.integer("input_sampling_rate", 24000, 1, maxRate)
	e.InputHopLength = o.integer("input_hop_length", 960, 1, maxRate)
	e.OutputSamplingRate = o.integer("output_sampling_rate", 44100, 1, maxRate)
	e.OutputHopLength = o.integer("output_hop_length", 512, 1, maxRate)
}

func (t *Transformer) read(o *object) {
	o.expectClass(transformerClass)
	t.InChannels = o.integer("in_channels", 128, 1, maxDim)
	t.ConditionDim = o.integer("condition_dim", 2048, 1, maxDim)
	t.Layers = o.integer("num_layers", 36, 1, maxLayers)
	t.Heads = o.integer("num_attention_heads", 32, 1, maxDim)
	t.HeadDim = o.integer("attention_head_dim", 64, 1, maxDim)
	t.FFInnerDim = o.integer("ff_inner_dim", 8192, 1, maxDim)
	t.RotaryDim = o.integer("rotary_dim", 32, 1, maxDim)
	t.FourierDim = o.integer("fourier_embedding_dim", 256, 1, maxDim)
}

func (v *Vocoder) read(o *object) {
	const maxRatios, maxRatio = 16, 1 << 12
	o.expectClass(vocoderClass)
	v.LatentChannels = o.integer("latent_channels", 128, 1, maxDim)
	v.DecoderInputDim = o.integer("decoder_input_dim", 1024, 1, maxDim)
	v.DecoderHiddenDim = o.integer("decoder_hidden_dim", 1536, 1, maxDim)
	v.SamplingRate = o.integer("sampling_rate", 44100, 1, maxRate)
	v.UpsamplingRatios = []int{8, 8, 4, 2}
	if value, ok := o.get("upsampling_ratios"); ok {
		v.UpsamplingRatios = nil
		expected := fmt.Sprintf("1 to %d integers from 1 to %d", maxRatios, maxRatio)
		for _, element := range o.array("upsampling_ratios") {
			ratio, err := strconv.Atoi(string(element))
			if err != nil || ratio < 1 || ratio > maxRatio {
				o.wrong("upsampling_ratios", value, expected)
				return
			}
			v.UpsamplingRatios = append(v.UpsamplingRatios, ratio)
		}
		if n := len(v.UpsamplingRatios); n < 1 || n > maxRatios {
			o.wrong("upsampling_ratios", value, expected)
		}
	}
}

func (s *Scheduler) read(o *object) {
	o.expectClass(schedulerClass)
	s.Shift = o.number("shift", 1, 1e-6, 1e6)
	s.NumTrainTimesteps = o.integer("num_train_timesteps", 1000, 1, maxRate)
	s.InvertSigmas = o.flag("invert_sigmas", false)
	for _, key := range []string{
		"use_dynamic_shifting", "use_karras_sigmas", "use_exponential_sigmas",
		"use_beta_sigmas", "stochastic_sampling",
	} {
		if o.flag(key, false) {
			o.report.add("%s: %s is true: not supported", o.file, key)
		}
	}
	if value, ok := o.get("shift_terminal"); ok {
		o.report.add("%s: shift_terminal is %s, expected null: not supported", o.file, shorten(value))
	}
}
