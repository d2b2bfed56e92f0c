package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"skald/host/checkpoint"
	"skald/host/engine"
	"skald/host/music3/tokenizer"
	"skald/host/nano"
)

// damaged copies the built-in model to a folder and changes tensors of one component.
func damaged(t *testing.T, component string, change func(checkpoint.Tensor)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "damaged")
	if err := os.CopyFS(dir, nano.FS()); err != nil {
		t.Fatal(err)
	}
	paths, err := fs.Glob(os.DirFS(dir), component+"/*.safetensors")
	if err != nil || len(paths) != 1 {
		t.Fatalf("weights of %s: %v, %v", component, paths, err)
	}
	path := filepath.Join(dir, paths[0])
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.ParseFile(path, data) // its tensors alias data
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.Names() {
		x, _ := f.Tensor(name)
		change(x)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fill writes one value to every number of a tensor.
func fill(x checkpoint.Tensor, v float32) {
	for i := range x.Elements() {
		switch x.DType {
		case checkpoint.F32:
			binary.LittleEndian.PutUint32(x.Data[4*i:], math.Float32bits(v))
		case checkpoint.BF16:
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(math.Float32bits(v)>>16))
		}
	}
}

// TestNumericFailuresAreErrors breaks the model in each stage: no song may come of it,
// and the error names the stage.
func TestNumericFailuresAreErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tried := 0
	for _, x := range []struct {
		what, component, tensor string
		value                   float32
		stage                   engine.Stage
	}{
		{"NaN in the first norm", "language_model", "model.layers.0.input_layernorm.weight", nan, engine.StagePrompt},
		{"infinity in the last norm", "language_model", "model.norm.weight", inf, engine.StagePrompt},
		{"NaN in the head", "language_model", "lm_head.weight", nan, engine.StageAR},
		{"infinity in the head", "language_model", "lm_head.weight", inf, engine.StageAR},
		{"NaN in a residual head", "rvq_depth_decoder", "audio_heads.3.weight", nan, engine.StageAR},
		{"NaN in the condition", "condition_encoder", "proj.bias", nan, engine.StageFlow},
		{"NaN in the flow", "transformer", "transformer_blocks.1.ff_out.bias", nan, engine.StageFlow},
		{"infinity in the flow", "transformer", "proj_out.weight", inf, engine.StageFlow},
		{"NaN in the vocoder", "vocoder", "conv_out.bias", nan, engine.StageVocoder},
	} {
		dir := damaged(t, x.component, func(w checkpoint.Tensor) {
			if w.Name == x.tensor {
				fill(w, x.value)
				tried++
			}
		})
		expectNumeric(t, x.what, dir, x.stage)
	}
	silent := damaged(t, "vocoder", func(w checkpoint.Tensor) {
		if w.Name == "conv_out.weight_g" || w.Name == "conv_out.bias" {
			fill(w, 0)
		}
	})
	expectNumeric(t, "a silent vocoder", silent, engine.StageVocoder)
	constant := damaged(t, "vocoder", func(w checkpoint.Tensor) {
		switch w.Name {
		case "conv_out.weight_g":
			fill(w, 0)
		case "conv_out.bias":
			fill(w, 0.25)
		}
	})
	expectNumeric(t, "a constant vocoder", constant, engine.StageVocoder)
	if tried != 9 {
		t.Errorf("%d tensors were changed, expected 9", tried)
	}
	t.Logf("%d broken models tried", tried+2)
}

func expectNumeric(t *testing.T, what, dir string, stage engine.Stage) {
	t.Helper()
	e := open(t, dir, "")
	defer e.Close()
	_, err := e.Sing(context.Background(), short(e))
	var bad *engine.NumericError
	if !errors.As(err, &bad) {
		t.Errorf("%s: error %v, expected a numeric failure", what, err)
	} else if bad.Stage != stage {
		t.Errorf("%s: stage %s (%v), expected %s", what, bad.Stage, bad, stage)
	}
	if waiting, running := e.Busy(); waiting != 0 || running != 0 {
		t.Errorf("%s: %d waiting, %d running afterwards", what, waiting, running)
	}
}

// TestOneBadSongOthersSing has a song whose numbers fail among others.
func TestOneBadSongOthersSing(t *testing.T) {
	data, err := fs.ReadFile(nano.FS(), "tokenizer/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	poison := tok.Encode("~")
	dir := damaged(t, "language_model", func(w checkpoint.Tensor) {
		if w.Name == "model.embed_tokens.weight" {
			width := len(w.Data) / w.Shape[0]
			w.Data, w.Shape = w.Data[int(poison[0])*width:][:width], []int{1, w.Shape[1]}
			fill(w, float32(math.NaN()))
		}
	})
	e := open(t, dir, "")
	defer e.Close()
	r := short(e)
	r.MaxFrames = 40
	want := sing(t, e, r)
	bad := r
	bad.Lyrics += "\n~"
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if i%2 == 0 {
				song, err := e.Sing(context.Background(), r)
				if err != nil || !sameSamples(want, song) {
					t.Errorf("song %d among bad ones: error %v, or other samples", i, err)
				}
				return
			}
			var n *engine.NumericError
			if _, err := e.Sing(context.Background(), bad); !errors.As(err, &n) || n.Stage != engine.StagePrompt {
				t.Errorf("bad song %d: error %v, expected a numeric failure in the prompt", i, err)
			}
		})
	}
	all.Wait()
}
