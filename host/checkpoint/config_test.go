package checkpoint

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// settings are the files of a config as they can be changed one key at a time.
type settings map[string]map[string]any

func settingsOf(t testing.TB, config Config) settings {
	t.Helper()
	files, err := config.Files()
	if err != nil {
		t.Fatal(err)
	}
	s := settings{}
	for name, data := range files {
		var values map[string]any
		if err := json.Unmarshal(data, &values); err != nil {
			t.Fatal(err)
		}
		s[name] = values
	}
	return s
}

func (s settings) config() (Config, error) {
	return readConfig(func(name string) ([]byte, error) {
		if s[name] == nil {
			return nil, fmt.Errorf("%s is missing: %w", name, fs.ErrNotExist)
		}
		return json.Marshal(s[name])
	})
}

func TestConfigRoundTrip(t *testing.T) {
	for _, tied := range []bool{false, true} {
		want := sampleConfig()
		want.LanguageModel.TieWordEmbeddings = tied
		got, err := settingsOf(t, want).config()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// TestConfigDefaults removes keys that may be absent.
func TestConfigDefaults(t *testing.T) {
	s := settingsOf(t, sampleConfig())
	lm := s[languageModelConfig]
	lm["vocab_size"], lm["hidden_size"] = 200000, 4096
	for _, key := range []string{
		"head_dim", "rms_norm_eps", "tie_word_embeddings", "model_type", "hidden_act", "attention_bias",
		"audio_end_token_id", "audio_cfg_token_id", "audio_code_offset", "audio_codebook_size",
	} {
		delete(lm, key)
	}
	lm["num_attention_heads"], lm["num_key_value_heads"] = 32, nil
	for name := range s {
		if name != languageModelConfig {
			s[name] = map[string]any{}
		}
	}
	got, err := s.config()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		LanguageModel: LanguageModel{
			VocabSize: 200000, HiddenSize: 4096, Layers: 2, Heads: 32, KVHeads: 32, HeadDim: 128,
			IntermediateSize: 7, MaxPositions: 99, RopeTheta: 5e5, RMSNormEps: 1e-6,
			AudioEndID: 151670, AudioCFGID: 151654, AudioCodeOffset: 151675, AudioCodebookSize: 16384,
		},
		DepthDecoder: DepthDecoder{
			HiddenSize: 4096, Layers: 4, Heads: 16, IntermediateSize: 6144, AudioVocabSize: 1024, Codebooks: 8, MaxPositions: 16,
		},
		ConditionEncoder: ConditionEncoder{
			HiddenDim: 4096, Layers: 8, OutDim: 2048,
			InputSamplingRate: 24000, InputHopLength: 960, OutputSamplingRate: 44100, OutputHopLength: 512,
		},
		Transformer: Transformer{
			InChannels: 128, ConditionDim: 2048, Layers: 36, Heads: 32, HeadDim: 64, FFInnerDim: 8192, RotaryDim: 32, FourierDim: 256,
		},
		Vocoder: Vocoder{
			LatentChannels: 128, DecoderInputDim: 1024, DecoderHiddenDim: 1536,
			UpsamplingRatios: []int{8, 8, 4, 2}, SamplingRate: 44100,
		},
		Scheduler: Scheduler{Shift: 1, NumTrainTimesteps: 1000},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRopeTheta(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	for _, test := range []struct {
		name    string
		members map[string]any
		want    float64
		err     string
	}{
		{"top level", object("rope_theta", 7e5, "rope_scaling", nil), 7e5, ""},
		{"rope_parameters", object("rope_parameters", object("rope_theta", 8e5, "rope_type", "default")), 8e5, ""},
		{"both", object("rope_theta", 7e5, "rope_parameters", object("rope_theta", 8e5)), 8e5, ""},
		{"parameters without theta", object("rope_theta", 7e5, "rope_parameters", object("rope_type", "default")), 7e5, ""},
		{"neither", object(), 0, "rope_theta is missing"},
		{"yarn", object("rope_theta", 7e5, "rope_scaling", object("type", "yarn", "factor", 4)), 0, `rope_scaling.type is "yarn"`},
		{"llama3", object("rope_parameters", object("rope_theta", 7e5, "rope_type", "llama3")), 0, `rope_parameters.rope_type is "llama3"`},
		{"partial", object("rope_theta", 7e5, "partial_rotary_factor", 0.5), 0, "partial_rotary_factor is not 1"},
		{"partial within", object("rope_parameters", object("rope_theta", 7e5, "partial_rotary_factor", 0.5)), 0, "rope_parameters.partial_rotary_factor is not 1"},
		{"text", object("rope_theta", "1e6"), 0, `rope_theta is "1e6", expected a number`},
		{"zero", object("rope_parameters", object("rope_theta", 0)), 0, `rope_parameters.rope_theta is 0, expected a number from 1`},
		{"no object", object("rope_theta", 7e5, "rope_scaling", 4), 0, `rope_scaling is 4, expected an object`},
	} {
		s := settingsOf(t, sampleConfig())
		delete(s[languageModelConfig], "rope_theta")
		for key, value := range test.members {
			s[languageModelConfig][key] = value
		}
		got, err := s.config()
		switch {
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: error %v, want %s", test.name, err, test.err)
		case test.err == "" && (err != nil || got.LanguageModel.RopeTheta != test.want):
			t.Errorf("%s: %g, %v, want %g", test.name, got.LanguageModel.RopeTheta, err, test.want)
		}
	}
}

// TestConfigRefuses changes one key of a good config.
func TestConfigRefuses(t *testing.T) {
	const lm, dd, ce, tr, vo, sc = languageModelConfig, depthDecoderConfig, conditionEncoderConfig,
		transformerConfig, vocoderConfig, schedulerConfig
	long := strings.Repeat("x", 1000)
	tests := []struct {
		file, key string
		value     any
		want      string // after the file's name
	}{
		{lm, "vocab_size", nil, "vocab_size is missing, expected an integer from 1"},
		{lm, "vocab_size", 0, "vocab_size is 0, expected an integer from 1"},
		{lm, "vocab_size", -61, "vocab_size is -61, expected"},
		{lm, "vocab_size", 61.5, "vocab_size is 61.5, expected an integer"},
		{lm, "vocab_size", "61", `vocab_size is "61", expected an integer`},
		{lm, "vocab_size", long, "vocab_size is a string of 1002 bytes, expected"},
		{lm, "vocab_size", int64(1 << 40), "vocab_size is 1099511627776, expected an integer from 1 to 16777216"},
		{lm, "vocab_size", 60, "audio_code_offset 20 and audio_codebook_size 41 need ids up to 60, but vocab_size is 60"},
		{lm, "hidden_size", nil, "hidden_size is missing"},
		{lm, "num_hidden_layers", nil, "num_hidden_layers is missing"},
		{lm, "num_hidden_layers", 1025, "num_hidden_layers is 1025, expected an integer from 1 to 1024"},
		{lm, "num_attention_heads", nil, "num_attention_heads is missing"},
		{lm, "num_key_value_heads", 4, "num_attention_heads 6 is not a multiple of num_key_value_heads 4"},
		{lm, "head_dim", 5, "head_dim 5 is odd"},
		{lm, "intermediate_size", nil, "intermediate_size is missing"},
		{lm, "max_position_embeddings", nil, "max_position_embeddings is missing"},
		{lm, "rms_norm_eps", -1, "rms_norm_eps is -1, expected a number from 0 to 1"},
		{lm, "rms_norm_eps", true, "rms_norm_eps is true, expected a number"},
		{lm, "tie_word_embeddings", 1, "tie_word_embeddings is 1, expected true or false"},
		{lm, "attention_bias", true, "attention_bias is true: biases in the attention are not supported"},
		{lm, "use_sliding_window", true, "use_sliding_window is true"},
		{lm, "layer_types", []string{"full_attention", "sliding_attention"}, `layer_types has "sliding_attention"`},
		{lm, "hidden_act", "gelu", `hidden_act is "gelu", expected silu`},
		{lm, "model_type", "qwen2", `model_type is "qwen2", expected qwen3`},
		{lm, "model_type", 3, `model_type is 3, expected a string`},
		{lm, "quantization", map[string]int{"bits": 4}, `quantization is {"bits":4}: quantised weights`},
		{lm, "quantization_config", map[string]int{}, `quantization_config is {}: quantised weights`},
		{lm, "audio_end_token_id", 61, "audio_end_token_id 61 is not below vocab_size 61"},
		{lm, "audio_end_token_id", 20, "audio_end_token_id 20 is the id of a semantic code (20 to 60)"},
		{lm, "audio_end_token_id", 60, "audio_end_token_id 60 is the id of a semantic code"},
		{lm, "audio_end_token_id", nil, "audio_end_token_id 151670 is not below vocab_size 61"},
		{lm, "audio_cfg_token_id", 61, "audio_cfg_token_id 61 is not below vocab_size 61"},
		{lm, "audio_code_offset", 21, "audio_code_offset 21 and audio_codebook_size 41 need ids up to 61, but vocab_size is 61"},
		{lm, "audio_codebook_size", 0, "audio_codebook_size is 0, expected an integer from 1"},
		{dd, "_class_name", "MiniMaxMusic3Vocoder", `_class_name is "MiniMaxMusic3Vocoder", expected MiniMaxMusic3RVQDepthDecoder`},
		{dd, "hidden_size", 20, "hidden_size 20, expected 15 as in language_model/config.json"},
		{dd, "num_attention_heads", 4, "hidden_size 15 is not a multiple of num_attention_heads 4"},
		{dd, "num_codebooks", 1, "num_codebooks is 1, expected an integer from 2"},
		{dd, "max_position_embeddings", 2, "max_position_embeddings 2, expected at least num_codebooks 3"},
		{dd, "quantization", map[string]int{"bits": 8}, `quantization is {"bits":8}`},
		{ce, "condition_hidden_dim", 16, "condition_hidden_dim 16, expected 15, hidden_size of language_model/config.json"},
		{ce, "num_condition_layers", 8, "num_condition_layers 8, expected 3, num_codebooks of rvq_depth_decoder/config.json"},
		{ce, "out_dim", 12, "out_dim 12, expected 13, condition_dim of transformer/config.json"},
		{ce, "input_hop_length", 0, "input_hop_length is 0"},
		{tr, "in_channels", 12, "in_channels 12, expected 10, latent_channels of vocoder/config.json"},
		{tr, "rotary_dim", 5, "rotary_dim 5, expected an even number up to attention_head_dim 7"},
		{tr, "rotary_dim", 8, "rotary_dim 8, expected an even number up to attention_head_dim 7"},
		{tr, "fourier_embedding_dim", 9, "fourier_embedding_dim 9, expected an even number"},
		{tr, "num_attention_heads", 1 << 19, "num_attention_heads 524288 times attention_head_dim 7 is more than"},
		{vo, "latent_channels", 11, "latent_channels 11 is odd"},
		{vo, "upsampling_ratios", []int{3, 4}, "upsampling_ratios [3 4]: 3 is odd, expected even numbers: an odd ratio s gives L*s-1 samples"},
		{vo, "upsampling_ratios", []int{4, 4}, "upsampling_ratios [4 4] multiply to 16, expected 12, output_hop_length of condition_encoder/config.json"},
		{vo, "upsampling_ratios", []int{4096, 4096, 4096, 4096, 4096, 4096}, "upsampling_ratios [4096 4096 4096 4096 4096 4096] multiply to more than 16777216, expected 12"},
		{vo, "upsampling_ratios", []int{}, "upsampling_ratios is [], expected 1 to 16 integers"},
		{vo, "upsampling_ratios", []int{0}, "upsampling_ratios is [0], expected 1 to 16 integers"},
		{vo, "upsampling_ratios", []string{"6"}, `upsampling_ratios is ["6"], expected`},
		{vo, "upsampling_ratios", 12, "upsampling_ratios is 12, expected an array"},
		{vo, "upsampling_ratios", make([]int, 17), "upsampling_ratios is [0,0"},
		{vo, "decoder_hidden_dim", 3, "decoder_hidden_dim 3 cannot be halved 2 times"},
		{sc, "shift", 0, "shift is 0, expected a number"},
		{sc, "num_train_timesteps", 0, "num_train_timesteps is 0"},
		{sc, "use_dynamic_shifting", true, "use_dynamic_shifting is true: not supported"},
		{sc, "use_karras_sigmas", true, "use_karras_sigmas is true: not supported"},
		{sc, "stochastic_sampling", true, "stochastic_sampling is true: not supported"},
		{sc, "shift_terminal", 0.1, "shift_terminal is 0.1, expected null"},
		{sc, "_class_name", "EulerDiscreteScheduler", `_class_name is "EulerDiscreteScheduler", expected FlowMatch`},
	}
	for _, test := range tests {
		s := settingsOf(t, sampleConfig())
		s[test.file][test.key] = test.value
		_, err := s.config()
		if err == nil {
			t.Errorf("%s: %s %v is accepted", test.file, test.key, test.value)
			continue
		}
		if want := test.file + ": " + test.want; !strings.Contains(err.Error(), want) {
			t.Errorf("%s %v:\n  got  %v\n  want %s", test.key, test.value, err, want)
		}
	}
	t.Logf("%d configs refused", len(tests))
}

func TestConfigListsAllProblems(t *testing.T) {
	s := settingsOf(t, sampleConfig())
	delete(s, vocoderConfig)
	delete(s[languageModelConfig], "hidden_size")
	s[transformerConfig]["num_layers"] = "many"
	_, err := s.config()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"3 problems", "hidden_size is missing", "num_layers is \"many\"", vocoderConfig + " is missing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\n  lacks %q", err, want)
		}
	}
}

func TestInvalidJSON(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{"", "f: byte 0: the file is empty"},
		{"  ", "f: byte 0: the file is empty"},
		{"[]", "f: expected a JSON object, found an array"},
		{"null", "f: expected a JSON object, found null"},
		{`{"a":1,}`, "f: byte 7: not valid JSON"},
		{`{"a":NaN}`, "f: byte 5: not valid JSON"},
		{`{"a":1`, "f: byte 6: not valid JSON"},
		{`{"a":1,"a":2}`, "f: byte 7: not valid JSON: duplicate"},
		{"{\"a\":\"\xff\"}", "f: byte 6: not valid JSON"},
		{`{} {}`, "f: byte 4: something follows"},
		{`{}x`, "f: byte 2: not valid JSON"},
		{strings.Repeat(`{"a":`, 20_000), "not valid JSON: exceeded max depth"},
	} {
		_, err := parseObject("f", []byte(test.data), &problems{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.20q: %v, want %s", test.data, err, test.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	names := []string{
		languageModelConfig, depthDecoderConfig, conditionEncoderConfig, transformerConfig, vocoderConfig, schedulerConfig,
	}
	good, err := sampleConfig().Files()
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range names {
		f.Add(uint8(i), good[name])
	}
	f.Add(uint8(0), []byte(`{"rope_parameters":{"rope_theta":1e6,"type":"yarn"},"layer_types":[[]]}`))
	f.Add(uint8(4), []byte(`{"upsampling_ratios":[4096,4096,1,9999999999999999999]}`))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		replaced := names[int(which)%len(names)]
		config, err := readConfig(func(name string) ([]byte, error) {
			if name == replaced {
				return data, nil
			}
			return good[name], nil
		})
		if err != nil {
			return
		}
		for _, spec := range Inventory(config) {
			if size, ok := byteSize(F64, spec.Shape); !ok || size == 0 {
				t.Fatalf("accepted, but %s %s has shape %v", spec.Component, spec.Name, spec.Shape)
			}
		}
	})
}
