package checkpoint

import (
	"fmt"
	"strconv"
)

// check reports every place where the settings contradict themselves or each
// other.
func (c *Config) check(report *problems) {
	c.LanguageModel.check(report)
	c.checkDepthDecoder(report)
	c.checkConditionEncoder(report)
	c.checkTransformer(report)
	c.checkVocoder(report)
}

func (m *LanguageModel) check(report *problems) {
	add := func(format string, args ...any) {
		report.add(languageModelConfig+": "+format, args...)
	}
	if m.Heads%m.KVHeads != 0 {
		add("num_attention_heads %d is not a multiple of num_key_value_heads %d", m.Heads, m.KVHeads)
	}
	if m.HeadDim%2 != 0 {
		add("head_dim %d is odd, expected an even number: the rotary embedding turns pairs", m.HeadDim)
	}
	first, last := m.AudioCodeOffset, m.AudioCodeOffset+m.AudioCodebookSize-1
	if last >= m.VocabSize {
		add("audio_code_offset %d and audio_codebook_size %d need ids up to %d, but vocab_size is %d",
			m.AudioCodeOffset, m.AudioCodebookSize, last, m.VocabSize)
	}
	if m.AudioEndID >= m.VocabSize {
		add("audio_end_token_id %d is not below vocab_size %d", m.AudioEndID, m.VocabSize)
	}
	if m.AudioEndID >= first && m.AudioEndID <= last {
		add("audio_end_token_id %d is the id of a semantic code (%d to %d)", m.AudioEndID, first, last)
	}
	if m.AudioCFGID >= m.VocabSize {
		add("audio_cfg_token_id %d is not below vocab_size %d", m.AudioCFGID, m.VocabSize)
	}
}

func (c *Config) checkDepthDecoder(report *problems) {
	d := c.DepthDecoder
	add := func(format string, args ...any) {
		report.add(depthDecoderConfig+": "+format, args...)
	}
	if d.HiddenSize != c.LanguageModel.HiddenSize {
		add("hidden_size %d, expected %d as in %s", d.HiddenSize, c.LanguageModel.HiddenSize, languageModelConfig)
	}
	if d.HiddenSize%d.Heads != 0 {
		add("hidden_size %d is not a multiple of num_attention_heads %d", d.HiddenSize, d.Heads)
	}
	if d.MaxPositions < d.Codebooks {
		add("max_position_embeddings %d, expected at least num_codebooks %d", d.MaxPositions, d.Codebooks)
	}
}

func (c *Config) checkConditionEncoder(report *problems) {
	e := c.ConditionEncoder
	add := func(format string, args ...any) {
		report.add(conditionEncoderConfig+": "+format, args...)
	}
	if e.HiddenDim != c.LanguageModel.HiddenSize {
		add("condition_hidden_dim %d, expected %d, hidden_size of %s",
			e.HiddenDim, c.LanguageModel.HiddenSize, languageModelConfig)
	}
	if e.Layers != c.DepthDecoder.Codebooks {
		add("num_condition_layers %d, expected %d, num_codebooks of %s",
			e.Layers, c.DepthDecoder.Codebooks, depthDecoderConfig)
	}
	if e.OutDim != c.Transformer.ConditionDim {
		add("out_dim %d, expected %d, condition_dim of %s", e.OutDim, c.Transformer.ConditionDim, transformerConfig)
	}
}

func (c *Config) checkTransformer(report *problems) {
	t := c.Transformer
	add := func(format string, args ...any) {
		report.add(transformerConfig+": "+format, args...)
	}
	if t.InChannels != c.Vocoder.LatentChannels {
		add("in_channels %d, expected %d, latent_channels of %s", t.InChannels, c.Vocoder.LatentChannels, vocoderConfig)
	}
	if t.Heads*t.HeadDim > maxDim {
		add("num_attention_heads %d times attention_head_dim %d is more than %d", t.Heads, t.HeadDim, maxDim)
	}
	if t.RotaryDim%2 != 0 || t.RotaryDim > t.HeadDim {
		add("rotary_dim %d, expected an even number up to attention_head_dim %d", t.RotaryDim, t.HeadDim)
	}
	if t.FourierDim%2 != 0 {
		add("fourier_embedding_dim %d, expected an even number: half cosines, half sines", t.FourierDim)
	}
}

func (c *Config) checkVocoder(report *problems) {
	v := c.Vocoder
	add := func(format string, args ...any) {
		report.add(vocoderConfig+": "+format, args...)
	}
	if v.LatentChannels%2 != 0 {
		add("latent_channels %d is odd, expected an even number: one half for each side", v.LatentChannels)
	}
	product, odd := 1, false
	for _, ratio := range v.UpsamplingRatios {
		product = min(product*ratio, maxRate+1)
		if ratio%2 != 0 {
			odd = true
			add("upsampling_ratios %v: %d is odd, expected even numbers: an odd ratio s gives L*s-1 samples for L, "+
				"and windows would not meet", v.UpsamplingRatios, ratio)
		}
	}
	if hop := c.ConditionEncoder.OutputHopLength; product != hop && !odd {
		found := strconv.Itoa(product)
		if product > maxRate {
			found = fmt.Sprintf("more than %d", maxRate)
		}
		add("upsampling_ratios %v multiply to %s, expected %d, output_hop_length of %s",
			v.UpsamplingRatios, found, hop, conditionEncoderConfig)
	}
	if v.DecoderHiddenDim>>len(v.UpsamplingRatios) == 0 {
		add("decoder_hidden_dim %d cannot be halved %d times, once for each of upsampling_ratios",
			v.DecoderHiddenDim, len(v.UpsamplingRatios))
	}
}
