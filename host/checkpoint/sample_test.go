package checkpoint

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// sampleConfig is a small model of odd sizes, all of them different where the
// architecture lets them differ.
func sampleConfig() Config {
	return Config{
		LanguageModel: LanguageModel{
			VocabSize: 61, HiddenSize: 15, Layers: 2, Heads: 6, KVHeads: 3, HeadDim: 4,
			IntermediateSize: 7, MaxPositions: 99, RopeTheta: 5e5, RMSNormEps: 1e-5,
			AudioEndID: 3, AudioCFGID: 4, AudioCodeOffset: 20, AudioCodebookSize: 41,
		},
		DepthDecoder: DepthDecoder{
			HiddenSize: 15, Layers: 1, Heads: 5, IntermediateSize: 9, AudioVocabSize: 11, Codebooks: 3, MaxPositions: 4,
		},
		ConditionEncoder: ConditionEncoder{
			HiddenDim: 15, Layers: 3, OutDim: 13,
			InputSamplingRate: 24000, InputHopLength: 960, OutputSamplingRate: 44100, OutputHopLength: 12,
		},
		Transformer: Transformer{
			InChannels: 10, ConditionDim: 13, Layers: 2, Heads: 3, HeadDim: 7, FFInnerDim: 5, RotaryDim: 6, FourierDim: 8,
		},
		Vocoder: Vocoder{
			LatentChannels: 10, DecoderInputDim: 3, DecoderHiddenDim: 13, UpsamplingRatios: []int{6, 2}, SamplingRate: 44100,
		},
		Scheduler: Scheduler{Shift: 1, NumTrainTimesteps: 1, InvertSigmas: true},
	}
}

// sampleTensors makes random tensors for a component of a config.
func sampleTensors(config Config, component string) []Tensor {
	random := rand.New(rand.NewPCG(1, 2))
	var tensors []Tensor
	for _, spec := range Inventory(config) {
		if spec.Component != component {
			continue
		}
		t := Tensor{Name: spec.Name, DType: F32, Shape: spec.Shape}
		for range t.Elements() {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, random.Uint32())
		}
		tensors = append(tensors, t)
	}
	return tensors
}

// writeSample writes a checkpoint of a config and returns its folder.
func writeSample(t testing.TB, config Config) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	files, err := config.Files()
	if err != nil {
		t.Fatal(err)
	}
	files[tokenizerFile] = []byte("{}")
	for name, data := range files {
		write(t, dir, name, data)
	}
	for _, component := range Components() {
		writeWeights(t, dir, component+"/"+weightsOf(component), sampleTensors(config, component))
	}
	return dir
}

// weightsOf is the name under which the published layout keeps weights.
func weightsOf(component string) string {
	if component == languageModel {
		return "model.safetensors"
	}
	return "diffusion_pytorch_model.safetensors"
}

func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeWeights(t testing.TB, dir, name string, tensors []Tensor) {
	t.Helper()
	if err := WriteFile(filepath.Join(dir, filepath.FromSlash(name)), tensors, nil); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}
