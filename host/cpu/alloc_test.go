package cpu_test

import (
	"testing"

	"skald/host/compute"
	"skald/host/cpu"
)

// TestNoAllocation runs every operation of the model over and over, with two
// threads, and counts allocations: none after the first round.
func TestNoAllocation(t *testing.T) {
	const rows, width, heads, headDim = 9, 48, 4, 12
	const channels, length = 12, 200
	for _, d := range []compute.DType{compute.F32, compute.BF16} {
		device := open(t, 2)
		cpu.ShareAll(device)
		q, err := device.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		floats := func(n int) compute.Buffer {
			b, err := device.NewBuffer(d, n)
			if err != nil {
				t.Fatal(err)
			}
			q.Zero(b)
			return b
		}
		ints := func(v ...int32) compute.Buffer {
			b, err := device.NewBuffer(compute.I32, len(v))
			if err != nil {
				t.Fatal(err)
			}
			q.UploadInts(b, v)
			return b
		}
		weight := func(use compute.Use, shape ...int) compute.Weight {
			n := 4
			for _, s := range shape {
				n *= s
			}
			w, err := device.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: shape, Data: make([]byte, n)}, use, d)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		cache, err := device.NewKVCache(compute.KVConfig{Layers: 1, Heads: heads / 2, HeadDim: headDim, BlockSize: 4, Blocks: 8, DType: d})
		if err != nil {
			t.Fatal(err)
		}
		x, y, z, wide := floats(rows*width), floats(rows*width), floats(rows*width), floats(2*rows*width)
		vector, matrix := weight(compute.UseVector, width), weight(compute.UseLinear, width, width)
		group := []compute.Linear{{Y: y, W: matrix, Bias: vector, Residual: y}, {Y: z, W: matrix}}
		table := []compute.TablePart{{Table: matrix}, {Table: matrix, Base: 3}, {Table: matrix}}
		ids := ints(make([]int32, rows*len(table))...)
		at := compute.Rows{N: rows, Pos: ints(0, 1, 2, 3, 4, 5, 6, 0, 1), Seq: ints(0, 0, 0, 0, 0, 0, 0, 1, 1), Blocks: ints(3, 1, 2, 0), MaxBlocks: 2}
		rope := compute.RopeTable{Cos: floats(rows * headDim / 2), Sin: floats(rows * headDim / 2), Dim: headDim}
		headNorm := weight(compute.UseVector, headDim)
		add := compute.AppendKV{Cache: cache, Q: x, K: y, V: z, QHeads: heads, QNorm: headNorm, KNorm: headNorm, Eps: 1e-6, Rope: rope}
		wave, wave2 := floats(length*channels), floats(2*length*channels)
		conv := compute.Conv{Batch: 1, Length: length, W: weight(compute.UseConv, channels, channels, 7), Dilation: 3, Pad: 9, Residual: wave2.Slice(0, length*channels)}
		up := compute.Conv{Batch: 1, Length: length, W: weight(compute.UseConvTranspose, channels, channels, 4), Stride: 2, Pad: 1}
		alpha := weight(compute.UseVector, channels)
		layers, out := []float32{1, 2}, ints(0, 0, 0, 0)
		sample := compute.Sample{Logits: x, Songs: 2, N: 100, Guidance: 1.5, TopK: 50, Restrict: true, Seeds: ints(1, 2, 3, 4), Iterations: ints(5, 6), Out: out, OutStride: 1}
		host, indices := make([]float32, rows*width), make([]int32, 4)

		operations := map[string]func(){
			"Upload":          func() { q.Upload(x, host) },
			"Download":        func() { q.Download(host, x) },
			"DownloadInts":    func() { q.DownloadInts(indices, out) },
			"Copy":            func() { q.Copy(y, x) },
			"Linear":          func() { q.Linear(x, rows, group...) },
			"Linear, 1 row":   func() { q.Linear(x, 1, group...) },
			"EmbedSum":        func() { q.EmbedSum(y, rows, ids, len(table), table, 0.5) },
			"AppendKV":        func() { q.AppendKV(add, at) },
			"CachedAttention": func() { q.CachedAttention(y, x, cache, 0, heads, 1, at) },
			"CopyBlock":       func() { q.CopyBlock(cache, 7, 3) },
			"Rope":            func() { q.Rope(x, 1, rows, heads, headDim, rope) },
			"FullAttention":   func() { q.FullAttention(wide.Slice(0, rows*width), x, y, z, 1, rows, heads, headDim, 1) },
			"RMSNorm":         func() { q.RMSNorm(y, x, vector, rows, 1e-6) },
			"LayerNorm":       func() { q.LayerNorm(y, x, vector, vector, rows, 1e-6) },
			"SwiGLU":          func() { q.SwiGLU(y, x, z) },
			"ValueSiLU":       func() { q.ValueSiLU(y, wide, rows) },
			"SiLU":            func() { q.SiLU(y, x) },
			"Tanh":            func() { q.Tanh(y, x) },
			"Add":             func() { q.Add(y, x, z) },
			"Snake":           func() { q.Snake(wave, wave, alpha, length) },
			"Finite":          func() { q.Finite(out, x) },
			"Conv1D":          func() { q.Conv1D(wave2.Slice(0, length*channels), wave, conv) },
			"ConvTranspose1D": func() { q.ConvTranspose1D(wave2, wave, up) },
			"Sample":          func() { q.Sample(sample) },
			"MixLayers":       func() { q.MixLayers(y, wide, rows, width, layers, 1) },
			"NearestRows":     func() { q.NearestRows(wide, 2*rows, x, rows, width) },
			"SplitChannels":   func() { q.SplitChannels(y, x, rows, width, 2) },
			"Blend":           func() { q.Blend(x, y, z, 0.5, 0.5) },
			"EulerStep":       func() { q.EulerStep(x, y, z, 1.7, 0.1) },
			"Sync":            func() { q.Sync() },
		}
		slices := map[string]float64{"FullAttention": 1, "Conv1D": 1} // the slice made for the call
		for name, f := range operations {
			if got := testing.AllocsPerRun(20, f); got > slices[name] {
				t.Errorf("%s of %v allocates %v times", name, d, got)
			}
		}
		if err := q.Sync(); err != nil {
			t.Error(err)
		}
		t.Logf("%v: %d operations", d, len(operations))
	}
}
