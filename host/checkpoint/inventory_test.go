package checkpoint

import (
	"maps"
	"testing"
)

// publishedConfig has the sizes of the published checkpoint.
func publishedConfig() Config {
	return Config{
		LanguageModel: LanguageModel{
			VocabSize: 200000, HiddenSize: 4096, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, IntermediateSize: 12288,
		},
		DepthDecoder: DepthDecoder{
			HiddenSize: 4096, Layers: 4, Heads: 16, IntermediateSize: 6144, AudioVocabSize: 1024, Codebooks: 8, MaxPositions: 16,
		},
		ConditionEncoder: ConditionEncoder{HiddenDim: 4096, Layers: 8, OutDim: 2048},
		Transformer: Transformer{
			InChannels: 128, ConditionDim: 2048, Layers: 36, Heads: 32, HeadDim: 64, FFInnerDim: 8192, RotaryDim: 32, FourierDim: 256,
		},
		Vocoder: Vocoder{
			LatentChannels: 128, DecoderInputDim: 1024, DecoderHiddenDim: 1536, UpsamplingRatios: []int{8, 8, 4, 2},
		},
	}
}

// TestPublishedInventory compares counts with those of the published files.
func TestPublishedInventory(t *testing.T) {
	wantTensors := map[string]int{
		languageModel: 399, depthDecoder: 47, conditionEncoder: 4, transformer: 441, vocoder: 121,
	}
	wantMillions := map[string]int{
		languageModel: 8584, depthDecoder: 646, conditionEncoder: 25, transformer: 2432, vocoder: 54,
	}
	tensors, parameters, millions := map[string]int{}, map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, spec := range Inventory(publishedConfig()) {
		tensors[spec.Component]++
		parameters[spec.Component] += Tensor{Shape: spec.Shape}.Elements()
		if key := spec.Component + " " + spec.Name; seen[key] {
			t.Errorf("%s is listed twice", key)
		} else {
			seen[key] = true
		}
	}
	for component, n := range parameters {
		millions[component] = (n + 500_000) / 1_000_000
	}
	if !maps.Equal(tensors, wantTensors) {
		t.Errorf("tensors %v, want %v", tensors, wantTensors)
	}
	if !maps.Equal(millions, wantMillions) {
		t.Errorf("million parameters %v, want %v", millions, wantMillions)
	}
	t.Logf("%d tensors, parameters %v", len(seen), parameters)
}
