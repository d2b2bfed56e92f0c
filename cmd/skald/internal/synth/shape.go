package synth

import (
	"fmt"
	"strings"

	"skald/host/checkpoint"
)

// Shape is the size of a model.
type Shape struct {
	Name   string
	About  string
	Config checkpoint.Config

	textVocab int   // ids below it are text; the first of the tokenizer's own
	shard     int64 // bytes of a shard's tensors at most, for the components in shards
}

// Shapes lists the known shapes, smallest first.
func Shapes() []Shape { return []Shape{tiny(), aligned(), medium(), full()} }

// ShapeNamed returns the shape of that name.
func ShapeNamed(name string) (Shape, error) {
	var names []string
	for _, s := range Shapes() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Shape{}, fmt.Errorf("there is no shape %q, only %s", name, strings.Join(names, ", "))
}

// WithLayers is the shape with n layers in each stack: the language model, the depth
// decoder and the flow transformer. Widths stay, and so what a layer costs.
func (s Shape) WithLayers(n int) (Shape, error) {
	c := &s.Config
	for _, layers := range []*int{&c.LanguageModel.Layers, &c.DepthDecoder.Layers, &c.Transformer.Layers} {
		if n < 1 || n > *layers {
			return s, fmt.Errorf("%d layers: shape %s has a stack of %d, want 1 to that", n, s.Name, *layers)
		}
		*layers = n
	}
	s.Name, s.About = fmt.Sprintf("%s-%d", s.Name, n), fmt.Sprintf("%s, %d layers of each stack", s.About, n)
	return s, nil
}

// tiny has dimensions that no vector unit likes, so that every tail runs.
func tiny() Shape {
	return Shape{
		Name:  "tiny",
		About: "small and odd dimensions, for tests",
		Config: checkpoint.Config{
			LanguageModel: checkpoint.LanguageModel{
				VocabSize: 1600, HiddenSize: 64, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 16,
				IntermediateSize: 160, MaxPositions: 10240, RopeTheta: 1e6, RMSNormEps: 1e-6,
				AudioEndID: 1009, AudioCFGID: 1003, AudioCodeOffset: 1014, AudioCodebookSize: 512,
			},
			DepthDecoder: checkpoint.DepthDecoder{
				HiddenSize: 64, Layers: 2, Heads: 4, IntermediateSize: 96, AudioVocabSize: 64,
				Codebooks: 8, MaxPositions: 16,
			},
			ConditionEncoder: conditionEncoder(64, 48),
			Transformer: checkpoint.Transformer{
				InChannels: 16, ConditionDim: 48, Layers: 3, Heads: 4, HeadDim: 16, FFInnerDim: 128,
				RotaryDim: 8, FourierDim: 32,
			},
			Vocoder: checkpoint.Vocoder{
				LatentChannels: 16, DecoderInputDim: 32, DecoderHiddenDim: 48,
				UpsamplingRatios: []int{8, 8, 4, 2}, SamplingRate: 44100,
			},
			Scheduler: scheduler(),
		},
		textVocab: 1000,
		shard:     250_000,
	}
}

// aligned has multiples of 64 and 128, so that main loops run and not only tails.
func aligned() Shape {
	return Shape{
		Name:  "aligned",
		About: "small dimensions that are multiples of 64, for tests of fast paths",
		Config: checkpoint.Config{
			LanguageModel: checkpoint.LanguageModel{
				VocabSize: 1600, HiddenSize: 256, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 128,
				IntermediateSize: 512, MaxPositions: 10240, RopeTheta: 1e6, RMSNormEps: 1e-6,
				AudioEndID: 1009, AudioCFGID: 1003, AudioCodeOffset: 1014, AudioCodebookSize: 512,
			},
			DepthDecoder: checkpoint.DepthDecoder{
				HiddenSize: 256, Layers: 2, Heads: 2, IntermediateSize: 256, AudioVocabSize: 128,
				Codebooks: 8, MaxPositions: 16,
			},
			ConditionEncoder: conditionEncoder(256, 128),
			Transformer: checkpoint.Transformer{
				InChannels: 64, ConditionDim: 128, Layers: 2, Heads: 4, HeadDim: 64, FFInnerDim: 1024,
				RotaryDim: 32, FourierDim: 256,
			},
			Vocoder: checkpoint.Vocoder{
				LatentChannels: 64, DecoderInputDim: 128, DecoderHiddenDim: 128,
				UpsamplingRatios: []int{8, 8, 4, 2}, SamplingRate: 44100,
			},
			Scheduler: scheduler(),
		},
		textVocab: 1000,
		shard:     2_000_000,
	}
}

// medium has about a thirtieth of the published weights.
func medium() Shape {
	return Shape{
		Name:  "medium",
		About: "between the two, to measure speed and memory on a small machine",
		Config: checkpoint.Config{
			LanguageModel: checkpoint.LanguageModel{
				VocabSize: 20_480, HiddenSize: 1536, Layers: 12, Heads: 12, KVHeads: 4, HeadDim: 128,
				IntermediateSize: 4096, MaxPositions: 10240, RopeTheta: 1e6, RMSNormEps: 1e-6,
				AudioEndID: 1009, AudioCFGID: 1003, AudioCodeOffset: 1014, AudioCodebookSize: 16384,
			},
			DepthDecoder: checkpoint.DepthDecoder{
				HiddenSize: 1536, Layers: 4, Heads: 6, IntermediateSize: 2304, AudioVocabSize: 1024,
				Codebooks: 8, MaxPositions: 16,
			},
			ConditionEncoder: conditionEncoder(1536, 512),
			Transformer: checkpoint.Transformer{
				InChannels: 128, ConditionDim: 512, Layers: 8, Heads: 8, HeadDim: 64, FFInnerDim: 2048,
				RotaryDim: 32, FourierDim: 256,
			},
			Vocoder: checkpoint.Vocoder{
				LatentChannels: 128, DecoderInputDim: 256, DecoderHiddenDim: 384,
				UpsamplingRatios: []int{8, 8, 4, 2}, SamplingRate: 44100,
			},
			Scheduler: scheduler(),
		},
		textVocab: 1000,
		shard:     500_000_000,
	}
}

// full has the published dimensions of MiniMax-Music3.
func full() Shape {
	return Shape{
		Name:  "full",
		About: "the published dimensions, to measure speed and memory",
		Config: checkpoint.Config{
			LanguageModel: checkpoint.LanguageModel{
				VocabSize: 200_000, HiddenSize: 4096, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128,
				IntermediateSize: 12288, MaxPositions: 10240, RopeTheta: 1e6, RMSNormEps: 1e-6,
				AudioEndID: 151_670, AudioCFGID: 151_654, AudioCodeOffset: 151_675, AudioCodebookSize: 16384,
			},
			DepthDecoder: checkpoint.DepthDecoder{
				HiddenSize: 4096, Layers: 4, Heads: 16, IntermediateSize: 6144, AudioVocabSize: 1024,
				Codebooks: 8, MaxPositions: 16,
			},
			ConditionEncoder: conditionEncoder(4096, 2048),
			Transformer: checkpoint.Transformer{
				InChannels: 128, ConditionDim: 2048, Layers: 36, Heads: 32, HeadDim: 64, FFInnerDim: 8192,
				RotaryDim: 32, FourierDim: 256,
			},
			Vocoder: checkpoint.Vocoder{
				LatentChannels: 128, DecoderInputDim: 1024, DecoderHiddenDim: 1536,
				UpsamplingRatios: []int{8, 8, 4, 2}, SamplingRate: 44100,
			},
			Scheduler: scheduler(),
		},
		textVocab: 151_643,
		shard:     5_000_000_000,
	}
}

// conditionEncoder has 25 frames and 44100/512 latents a second, as published.
func conditionEncoder(hidden, out int) checkpoint.ConditionEncoder {
	return checkpoint.ConditionEncoder{
		HiddenDim: hidden, Layers: 8, OutDim: out,
		InputSamplingRate: 24000, InputHopLength: 960,
		OutputSamplingRate: 44100, OutputHopLength: 512,
	}
}

func scheduler() checkpoint.Scheduler {
	return checkpoint.Scheduler{Shift: 1, NumTrainTimesteps: 1, InvertSigmas: true}
}
