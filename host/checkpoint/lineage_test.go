package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherLineages opens folders and files of packagings that are not read.
func TestOtherLineages(t *testing.T) {
	comfy := `{"diffusion_transformer.x":{"dtype":"I8","shape":[],"data_offsets":[0,1]},"latent_conditioners.y":{"dtype":"I8","shape":[],"data_offsets":[1,2]}}`
	for _, test := range []struct {
		file, data, want string
	}{
		{"qwen_7B/qwen_7B/config.json", "{}", "native packaging (qwen_7B)"},
		{"flowmatching_vae.pth", "PK", "native packaging (flowmatching_vae.pth)"},
		{"dav.pth", "PK", "native packaging (dav.pth)"},
		{"config.json", `{"quantization":{"group_size":64,"bits":4}}`, "MLX packaging"},
		{"lm.gguf", "GGUF...audiocpp.model_spec.family...", "audio-cpp GGUF packaging (lm.gguf)"},
		{"lm.gguf", "GGUF...mm3.model...", "mm3 GGUF packaging (lm.gguf)"},
		{"dit.gguf", "GGUF...wan...diffusion_transformer.x...latent_conditioners.y", "ComfyUI GGUF packaging (dit.gguf)"},
		{"other.gguf", "GGUF...llama...", "GGUF packaging of a model that is not known here (other.gguf)"},
		{"dit.safetensors", string(file(comfy, "ab")), "ComfyUI packaging (dit.safetensors)"},
	} {
		dir := t.TempDir()
		write(t, dir, test.file, []byte(test.data))
		expectOpen(t, dir, "this is the "+test.want, "not supported yet: use the diffusers folders (modular_model_index.json)")

		if strings.HasSuffix(test.file, ".gguf") || strings.HasSuffix(test.file, ".safetensors") {
			expectOpen(t, filepath.Join(dir, test.file), "this is the "+test.want)
		}
	}
}

func TestNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	expectOpen(t, dir, "no checkpoint recognised: expected modular_model_index.json or the folders language_model, ")
	expectOpen(t, filepath.Join(dir, "absent"))
	write(t, dir, "text", []byte("text"))
	expectOpen(t, filepath.Join(dir, "text"), "is a file, expected the folder of a checkpoint")
	write(t, dir, "config.json", []byte(`{"model_type":"qwen3"}`))
	write(t, dir, "x.safetensors", file("{}", ""))
	expectOpen(t, dir, "no checkpoint recognised")
}

// TestBesideNative opens a folder that holds both packagings, as a full snapshot
// of the published repository does.
func TestBesideNative(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	if notes := openGood(t, dir).Summary().Notes; len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	write(t, dir, "qwen_7B/qwen_7B/config.json", []byte("{}"))
	write(t, dir, "dav.pth", []byte("PK"))
	for range 2 {
		c := openGood(t, dir)
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		if notes := c.Summary().Notes; len(notes) != 1 || !strings.Contains(notes[0], "native packaging (qwen_7B) lies beside") {
			t.Errorf("notes %q", notes)
		}
		if err := os.Remove(filepath.Join(dir, modularIndex)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
