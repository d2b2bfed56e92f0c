package music3

import (
	"context"
	"strings"
	"testing"

	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/nano"
)

// zeros is a source of tensors of zeros.
type zeros struct{ Source }

func (z zeros) Tensor(component, name string) (checkpoint.Tensor, bool) {
	t, ok := z.Source.Tensor(component, name)
	t.Data = make([]byte, t.Elements()*t.DType.Size())
	return t, ok
}

// observedDevice counts what the device's own counter does not hold, or holds too much.
type observedDevice struct {
	compute.Device
	made int64 // tensors that were computed while loading and are used where they lie
	fold int64 // private memory of weights that only loading needed
}

func (d *observedDevice) Load(t compute.Tensor, use compute.Use, as compute.DType) (compute.Weight, error) {
	w, err := d.Device.Load(t, use, as)
	if err != nil {
		return nil, err
	}
	made := strings.HasPrefix(t.Name, "transformer.proj_") && strings.HasSuffix(t.Name, ")") || strings.HasSuffix(t.Name, "(folded)")
	if inPlace, _ := d.Device.(compute.Estimator).WeightBytes(t, use, as); made {
		d.made += inPlace
	}
	if t.Name == "fold" {
		d.fold += w.PrivateBytes()
	}
	return w, nil
}

// TestPlan: a model takes, to the byte, what its plan says, and its plan reads the data
// that loading reads.
func TestPlan(t *testing.T) {
	ck, err := checkpoint.OpenFS(nano.FS(), "nano")
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	stored := map[string]func(string) checkpoint.DType{
		"bf16": func(string) checkpoint.DType { return "BF16" },
		"f32":  func(string) checkpoint.DType { return "F32" },
		"f16":  func(string) checkpoint.DType { return "F16" },
	}
	for name, dtype := range stored {
		for _, p := range []Precision{FP32, Mixed, BF16} {
			for _, level := range []string{"go", ""} {
				const songs, positions = 3, 1000
				device, err := cpu.New(cpu.Options{Threads: 1, Level: level, PackBytes: 20000})
				if err != nil {
					t.Fatal(err)
				}
				plan, err := NewPlan(device, Shapes(ck.Config, dtype), ck.Config, p, songs, positions)
				if err != nil {
					t.Fatal(err)
				}
				if used := device.Memory().Used; used != 0 {
					t.Errorf("planning left %d bytes in use", used)
				}
				d := &observedDevice{Device: device}
				var told int64
				m, err := Load(context.Background(), d, zeros{Shapes(ck.Config, dtype)}, ck.Config, p, func(_ string, n int64) { told += n })
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.NewFrameLoop(songs, positions); err != nil {
					t.Fatal(err)
				}
				a := &allocator{dev: d}
				latents := Latents(ck.Config.ConditionEncoder, windowFrames)
				m.cond.newBuffers(a, windowFrames)
				m.flow.newBuffers(a, latents, 2, 200)
				m.voc.newBuffers(a, latents)
				got := device.Memory().Used - d.fold + d.made
				if n := plan.Need; got != n.Private+n.KVCache+n.Scratch {
					t.Errorf("stored as %s in %s at level %q: %d bytes in use, the plan says %+v", name, p, level, got, n)
				}
				if plan.Bytes != told {
					t.Errorf("stored as %s in %s: loading told of %d bytes, the plan of %d", name, p, told, plan.Bytes)
				}
				if plan.Need.Songs <= 0 || len(plan.Read) != 0 {
					t.Errorf("plan %+v reads %d tensors without data", plan.Need, len(plan.Read))
				}
				device.Close()
			}
		}
	}
	t.Log("3 stored types, 3 precisions, 2 levels")
}

// TestPlanReads: the plan of a checkpoint names its data, but for the table of which few
// rows are read, and the rest of a head of which only the codes are.
func TestPlanReads(t *testing.T) {
	device, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	ck, err := checkpoint.OpenFS(nano.FS(), "nano")
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	plan, err := NewPlan(device, ck, ck.Config, Mixed, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	lm := ck.Config.LanguageModel
	var want int64
	seen := map[string]int64{}
	for _, part := range checkpoint.Components() {
		want += ck.ComponentBytes(part)
	}
	tables := 1
	if !lm.TieWordEmbeddings {
		tables = 2
	}
	head, _ := ck.Tensor("language_model", "model.embed_tokens.weight")
	row := int64(len(head.Data) / head.Shape[0])
	want -= int64(tables) * int64(len(head.Data))
	want += 2*row*int64(lm.AudioCodebookSize) + row // embeddings and head of the codes, head of the end
	var got int64
	for _, r := range plan.Read {
		got += int64(len(r.Data))
		seen[r.Component] += int64(len(r.Data))
	}
	if got != want || len(seen) != len(checkpoint.Components()) {
		t.Errorf("the plan reads %d bytes (%v), want %d", got, seen, want)
	}
}
