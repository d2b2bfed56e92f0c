package checkpoint

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Files returns the settings files of a checkpoint with this config, by their
// names in it, as Open reads them: a config.json for each component, the
// scheduler's, and modular_model_index.json.
func (c Config) Files() (map[string][]byte, error) {
	m, d, e, t, v, s := c.LanguageModel, c.DepthDecoder, c.ConditionEncoder, c.Transformer, c.Vocoder, c.Scheduler
	settings := map[string]map[string]any{
		modularIndex: {
			"_class_name":        pipelineClass,
			"_blocks_class_name": "MiniMaxMusic3Blocks",
			languageModel:        indexEntry("transformers", "Qwen3ForCausalLM", languageModel),
			depthDecoder:         indexEntry("diffusers", depthDecoderClass, depthDecoder),
			conditionEncoder:     indexEntry("diffusers", conditionEncoderClass, conditionEncoder),
			transformer:          indexEntry("diffusers", transformerClass, transformer),
			vocoder:              indexEntry("diffusers", vocoderClass, vocoder),
			"scheduler":          indexEntry("diffusers", schedulerClass, "scheduler"),
			"tokenizer":          indexEntry("transformers", "Qwen2Tokenizer", "tokenizer"),
		},
		languageModelConfig: {
			"architectures":           []string{"Qwen3ForCausalLM"},
			"model_type":              qwen3,
			"hidden_act":              silu,
			"attention_bias":          false,
			"vocab_size":              m.VocabSize,
			"hidden_size":             m.HiddenSize,
			"num_hidden_layers":       m.Layers,
			"num_attention_heads":     m.Heads,
			"num_key_value_heads":     m.KVHeads,
			"head_dim":                m.HeadDim,
			"intermediate_size":       m.IntermediateSize,
			"max_position_embeddings": m.MaxPositions,
			"rms_norm_eps":            m.RMSNormEps,
			"rope_theta":              m.RopeTheta,
			"tie_word_embeddings":     m.TieWordEmbeddings,
			"audio_end_token_id":      m.AudioEndID,
			"audio_cfg_token_id":      m.AudioCFGID,
			"audio_code_offset":       m.AudioCodeOffset,
			"audio_codebook_size":     m.AudioCodebookSize,
		},
		depthDecoderConfig: {
			"_class_name":             depthDecoderClass,
			"hidden_size":             d.HiddenSize,
			"num_layers":              d.Layers,
			"num_attention_heads":     d.Heads,
			"intermediate_size":       d.IntermediateSize,
			"audio_vocab_size":        d.AudioVocabSize,
			"num_codebooks":           d.Codebooks,
			"max_position_embeddings": d.MaxPositions,
		},
		conditionEncoderConfig: {
			"_class_name":          conditionEncoderClass,
			"condition_hidden_dim": e.HiddenDim,
			"num_condition_layers": e.Layers,
			"out_dim":              e.OutDim,
			"input_sampling_rate":  e.InputSamplingRate,
			"input_hop_length":     e.InputHopLength,
			"output_sampling_rate": e.OutputSamplingRate,
			"output_hop_length":    e.OutputHopLength,
		},
		transformerConfig: {
			"_class_name":           transformerClass,
			"in_channels":           t.InChannels,
			"condition_dim":         t.ConditionDim,
			"num_layers":            t.Layers,
			"num_attention_heads":   t.Heads,
			"attention_head_dim":    t.HeadDim,
			"ff_inner_dim":          t.FFInnerDim,
			"rotary_dim":            t.RotaryDim,
			"fourier_embedding_dim": t.FourierDim,
		},
		vocoderConfig: {
			"_class_name":        vocoderClass,
			"latent_channels":    v.LatentChannels,
			"decoder_input_dim":  v.DecoderInputDim,
			"decoder_hidden_dim": v.DecoderHiddenDim,
			"upsampling_ratios":  v.UpsamplingRatios,
			"sampling_rate":      v.SamplingRate,
		},
		schedulerConfig: {
			"_class_name":         schedulerClass,
			"shift":               s.Shift,
			"num_train_timesteps": s.NumTrainTimesteps,
			"invert_sigmas":       s.InvertSigmas,
		},
	}
	files := make(map[string][]byte, len(settings))
	for name, values := range settings {
		data, err := json.Marshal(values, json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			return nil, err
		}
		files[name] = append(data, '\n')
	}
	return files, nil
}

// indexEntry is how modular_model_index.json names a component.
func indexEntry(library, class, folder string) []any {
	return []any{library, class, map[string]any{
		"subfolder": folder,
		"type_hint": []string{library, class},
	}}
}
