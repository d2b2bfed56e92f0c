package bench

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skald/cmd/skald/internal/synth"
	"skald/host/cpu"
	"skald/host/engine"
	"skald/host/music3"
)

// TestPublishedWork compares the counts with the published figures of the model: about
// 28 GFLOP of decoding and 18.9 GFLOP of the depth decoder for a frame, 3.47 TFLOP for one
// pass of the flow transformer, 3.2 GFLOP of the vocoder for a latent.
func TestPublishedWork(t *testing.T) {
	s, err := synth.ShapeNamed("full")
	if err != nil {
		t.Fatal(err)
	}
	c := s.Config
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"decode", decodeFLOP(c.LanguageModel, 2, 0), 28e9},
		{"depth frame", depthFLOP(c.DepthDecoder, 2), 18.9e9},
		{"flow transformer", flowFLOP(c.Transformer, 1, 689), 3.47e12},
		{"vocoder", vocoderFLOP(c.Vocoder, 689) / 689, 3.2e9},
		{"weights of the language model's layers", decodeBytes(c.LanguageModel, 1, 0, 2), 13.9e9},
	} {
		if r := x.got / x.want; r < 0.97 || r > 1.03 {
			t.Errorf("%s: %.4g, published %.4g", x.what, x.got, x.want)
		}
	}
}

func TestScaling(t *testing.T) {
	r := Row{LayersTimed: 4, LayersTotal: 36}
	r.fill(timing{seconds: []float64{1.4, 1.0, 1.2}, fixed: []float64{0.3, 0.2}}, 72e9, 36e9)
	// 0.2 + (1.0 - 0.2) * 9, and of the medians 0.25 + (1.2 - 0.25) * 9
	if r.ScaledSeconds != 7.4 || r.ScaledMedian != 8.8 || r.SecondsMin != 1 || r.SecondsMedian != 1.2 || r.GFLOPs != 9.73 || r.GBytesPerS != 4.86 {
		t.Errorf("row %+v", r)
	}
}

// TestEveryStageRuns measures every stage of a miniature model once.
func TestEveryStageRuns(t *testing.T) {
	s, err := synth.ShapeNamed("aligned")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	o := Options{
		Config: s.Config, Layers: 1, Stages: StageNames(), Precision: []music3.Precision{music3.BF16, music3.FP32},
		Latents: []int{5}, Rows: []int{2, 3}, Threads: 1, Runs: 1, Budget: time.Second,
	}
	var out bytes.Buffer
	if err := Run(context.Background(), dev, o, &out); err != nil {
		t.Fatal(err)
	}
	rows, err := ReadRows(&out)
	if err != nil {
		t.Fatal(err)
	}
	const each = 2 + 1 + 1 + 1 + 2 + 2 + 1 + 2
	if len(rows) != 2*each {
		t.Errorf("%d rows, expected %d", len(rows), 2*each)
	}
	for _, r := range rows {
		if r.ScaledSeconds <= 0 || r.GFLOPs <= 0 || r.Runs < 1 || r.Peer != "skald" {
			t.Errorf("row %+v", r)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, dev, o, &out); err == nil {
		t.Error("a cancelled run gave no error")
	}
	t.Logf("%d rows", len(rows))
}

func TestCompare(t *testing.T) {
	ours := []Row{
		{Stage: "dit", Work: "rows=1 L=86", DType: "bf16", Threads: 2, ScaledSeconds: 2},
		{Stage: "dit", Work: "rows=1 L=86", DType: "fp32", Threads: 2, ScaledSeconds: 2},
	}
	peers, err := ReadRows(strings.NewReader(`a note
{"peer":"torch","stage":"dit","work":"rows=1 L=86","dtype":"bf16","threads":2,"scaled_seconds":5,"disturbed":true}
{"peer":"torch","stage":"dit","work":"rows=1 L=86","dtype":"bf16","threads":1,"scaled_seconds":5}
`))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n, err := Compare(&out, ours, peers)
	if err != nil || n != 1 || !strings.Contains(out.String(), "2.50") || !strings.Contains(out.String(), "5*") {
		t.Errorf("%d comparisons, error %v:\n%s", n, err, out.String())
	}
	if _, err := ReadRows(strings.NewReader("{\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken line: %v", err)
	}
}

// TestWhole measures the loading of a small checkpoint, and songs of the built-in model.
func TestWhole(t *testing.T) {
	if _, err := residentBytes(); err != nil {
		t.Skipf("NOT EXAMINED: 4 rows of loading and of songs: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "tiny")
	tiny, err := synth.ShapeNamed("tiny")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(context.Background(), dir, synth.Options{Shape: tiny, DTypes: synth.Published}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	eo := engine.Options{Threads: 1, Precision: "bf16", Songs: 1}
	if err := Load(context.Background(), dir, eo, Options{Threads: 1}, &out); err != nil {
		t.Fatal(err)
	}
	if err := Songs(context.Background(), eo, 4, Options{Threads: 1}, &out); err != nil {
		t.Fatal(err)
	}
	rows, err := ReadRows(&out)
	if err != nil {
		t.Fatal(err)
	}
	var works []string
	for _, r := range rows {
		works = append(works, r.Stage+" "+r.Work)
		if r.Bytes <= 0 || r.ScaledSeconds <= 0 || r.DType != "bf16" {
			t.Errorf("%+v", r)
		}
	}
	if got, want := strings.Join(works, ", "), "load cold, load warm, songs song=3, songs song=4"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if err := Load(context.Background(), t.TempDir(), eo, Options{Threads: 1}, &out); err == nil {
		t.Error("an empty folder was loaded")
	}
}
