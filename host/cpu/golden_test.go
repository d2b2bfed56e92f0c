package cpu_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/refdata"
	"skald/host/rng"
)

// golden runs operations on the recorded inputs of the reference's own modules.
type golden struct {
	*testing.T
	file   *checkpoint.File
	device compute.Device
	queue  compute.Queue
	values int
	worst  float64 // in float32; bfloat16 must be equal
}

func forGolden(t *testing.T, f func(t *testing.T, g *golden)) {
	shared := refdata.Shared(t, "operations of the cpu device against the reference's modules")
	for _, name := range []string{"ops", "ops_aligned"} {
		t.Run(name, func(t *testing.T) {
			file, err := checkpoint.OpenFile(filepath.Join(shared, "golden", name, "ops.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			d := open(t, 2)
			q, err := d.NewQueue()
			if err != nil {
				t.Fatal(err)
			}
			g := &golden{T: t, file: file, device: d, queue: q}
			f(t, g)
			t.Logf("%d values, worst float32 error %.2g", g.values, g.worst)
			if g.values == 0 {
				t.Error("nothing was examined")
			}
		})
	}
}

var precisions = map[string]compute.DType{"fp32": compute.F32, "bf16": compute.BF16}

func (g *golden) tensor(name string) compute.Tensor {
	g.Helper()
	t, ok := g.file.Tensor(name)
	if !ok {
		g.Fatalf("%s is not recorded", name)
	}
	types := map[checkpoint.DType]compute.DType{checkpoint.F32: compute.F32, checkpoint.BF16: compute.BF16}
	return compute.Tensor{Name: name, DType: types[t.DType], Shape: t.Shape, Data: t.Data}
}

// numbers decodes a tensor.
func (g *golden) numbers(name string) []float32 {
	g.Helper()
	t := g.tensor(name)
	v := make([]float32, len(t.Data)/t.DType.Size())
	for i := range v {
		if t.DType == compute.F32 {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		} else {
			v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
		}
	}
	return v
}

func (g *golden) buffer(d compute.DType, v []float32) compute.Buffer {
	g.Helper()
	b, err := g.device.NewBuffer(d, len(v))
	if err != nil {
		g.Fatal(err)
	}
	g.queue.Upload(b, v)
	return b
}

func (g *golden) load(name string, use compute.Use, as compute.DType) compute.Weight {
	g.Helper()
	t := g.tensor(name)
	if use == compute.UseVector {
		t.Shape = []int{len(t.Data) / t.DType.Size()}
	}
	w, err := g.device.Load(t, use, as)
	if err != nil {
		g.Fatal(err)
	}
	return w
}

// compare asks for equality in bfloat16, which is what the portable kernels reach,
// and allows an absolute error in float32.
func (g *golden) compare(name string, b compute.Buffer, want []float32, allowed float64) {
	g.Helper()
	got := make([]float32, len(want))
	if err := g.queue.Download(got, b); err != nil {
		g.Fatal(err)
	}
	if b.DType() == compute.BF16 {
		allowed = 0
	}
	for i, w := range want {
		e := math.Abs(float64(got[i]) - float64(w))
		if !(e <= allowed) {
			g.Fatalf("%s: number %d of %d is %v, want %v", name, i, len(want), got[i], w)
		}
		g.worst = max(g.worst, e)
	}
	g.values += len(want)
}

// channelsLast turns [batch, channels, length] into [batch, length, channels].
func channelsLast(v []float32, batch, channels, length int) []float32 {
	y := make([]float32, len(v))
	for i, x := range v {
		b, c, t := i/length/channels, i/length%channels, i%length
		y[(b*length+t)*channels+c] = x
	}
	return y
}

func TestGoldenSnake(t *testing.T) {
	forGolden(t, func(t *testing.T, g *golden) {
		for name, d := range precisions {
			key := "snake." + name + "."
			shape := g.tensor(key + "x").Shape
			x := g.buffer(d, channelsLast(g.numbers(key+"x"), shape[0], shape[1], shape[2]))
			g.queue.Snake(x, x, g.load(key+"alpha", compute.UseVector, d), shape[0]*shape[2])
			g.compare(key, x, channelsLast(g.numbers(key+"y"), shape[0], shape[1], shape[2]), 5e-7)
		}
	})
}

func TestGoldenConvolutions(t *testing.T) {
	forGolden(t, func(t *testing.T, g *golden) {
		for name, d := range precisions {
			for _, dilation := range []int{1, 3, 9} {
				g.convolution(fmt.Sprintf("conv.%s.dilation%d.", name, dilation), d, compute.UseConv, g.queue.Conv1D,
					compute.Conv{Dilation: dilation, Pad: 3 * dilation})
			}
			for _, stride := range []int{2, 3, 4, 5, 8} {
				g.convolution(fmt.Sprintf("conv_transpose.%s.stride%d.", name, stride), d, compute.UseConvTranspose, g.queue.ConvTranspose1D,
					compute.Conv{Stride: stride, Pad: (stride + 1) / 2})
			}
		}
	})
}

func (g *golden) convolution(key string, d compute.DType, use compute.Use, run func(y, x compute.Buffer, c compute.Conv), c compute.Conv) {
	g.Helper()
	in, out := g.tensor(key+"x").Shape, g.tensor(key+"y").Shape
	c.Batch, c.Length = in[0], in[2]
	c.W, c.Bias = g.load(key+"folded", use, d), g.load(key+"bias", compute.UseVector, d)
	want := channelsLast(g.numbers(key+"y"), out[0], out[1], out[2])
	y := g.buffer(d, make([]float32, len(want)))
	run(y, g.buffer(d, channelsLast(g.numbers(key+"x"), in[0], in[1], in[2])), c)
	g.compare(key, y, want, 2.5e-6)
}

func TestGoldenFlow(t *testing.T) {
	var recorded struct {
		Euler map[string]struct {
			T           []string `json:"t"`
			DT          []string `json:"dt"`
			NoiseWeight []string `json:"noise_weight"`
			T16         []string `json:"t_bf16"`
			Weight16    []string `json:"noise_weight_bf16"`
		} `json:"euler"`
	}
	forGolden(t, func(t *testing.T, g *golden) {
		readJSON(t, &recorded)
		e := recorded.Euler["7"]
		for name, d := range precisions {
			key := "flow." + name + "."
			times, weights := e.T, e.NoiseWeight
			if d == compute.BF16 {
				times, weights = e.T16, e.Weight16
			}
			x, vc, vu := g.numbers(key+"x"), g.numbers(key+"v_cond"), g.numbers(key+"v_uncond")
			noise, carry := g.buffer(d, g.numbers(key+"noise")), g.buffer(d, g.numbers(key+"carry"))
			for _, scale := range []float32{1.7, 3} { // guidance alone: a step of 1 from 0
				y := g.buffer(d, make([]float32, len(x)))
				g.queue.EulerStep(y, g.buffer(d, vc), g.buffer(d, vu), scale, 1)
				g.compare(key+"guided", y, g.numbers(fmt.Sprintf("%sguided_%.1f", key, scale)), 0)
			}
			for k := range 7 {
				y := g.buffer(d, x)
				g.queue.Blend(y, noise, carry, hexFloat(t, weights[k]), hexFloat(t, times[k]))
				g.compare(fmt.Sprint(key, "blend", k), y, g.numbers(fmt.Sprint(key, "blend", k)), 0)

				dt := g.buffer(d, []float32{hexFloat(t, e.DT[k])}) // rounds it to the type of the run
				step := make([]float32, 1)
				if err := g.queue.Download(step, dt); err != nil {
					t.Fatal(err)
				}
				y = g.buffer(d, x)
				g.queue.EulerStep(y, g.buffer(d, vc), g.buffer(d, vu), 1.7, step[0])
				g.compare(fmt.Sprint(key, "step", k), y, g.numbers(fmt.Sprint(key, "step", k)), 0)
			}
		}
	})
}

func readJSON(t *testing.T, v any) {
	t.Helper()
	shared := refdata.Shared(t, "recorded tables")
	text, err := os.ReadFile(filepath.Join(shared, "golden", "ops", "ops.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

func hexFloat(t *testing.T, s string) float32 {
	t.Helper()
	var b uint32
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return math.Float32frombits(b)
}

func TestGoldenNorms(t *testing.T) {
	shared := refdata.Shared(t, "norms of the cpu device against the reference's modules")
	folders := map[string]string{"ops": "tiny", "ops_aligned": "aligned"}
	forGolden(t, func(t *testing.T, g *golden) {
		checkpoint := filepath.Join(shared, "golden", folders[filepath.Base(t.Name())])
		for name, d := range precisions {
			for _, c := range []struct{ op, x, y, folder, weight, bias string }{
				{"rmsnorm", "x", "language_model", "language_model", "model.norm.weight", ""},
				{"rmsnorm", "x", "depth_decoder", "rvq_depth_decoder", "norm.weight", ""},
				{"layernorm", "x", "y", "transformer", "transformer_blocks.0.norm1.weight", "transformer_blocks.0.norm1.bias"},
			} {
				key := c.op + "." + name + "."
				x := g.numbers(key + c.x)
				w := g.stored(checkpoint, c.folder, c.weight, d)
				b := g.buffer(d, x)
				rows := len(x) / w.Shape()[0]
				if c.op == "rmsnorm" {
					g.queue.RMSNorm(b, b, w, rows, 1e-6)
				} else {
					g.queue.LayerNorm(b, b, w, g.stored(checkpoint, c.folder, c.bias, d), rows, 1e-5)
				}
				g.compare(key+c.y, b, g.numbers(key+c.y), 2e-6)
			}
		}
	})
}

// stored loads a vector of a recorded checkpoint, from whichever shard holds it.
func (g *golden) stored(dir, component, name string, as compute.DType) compute.Weight {
	g.Helper()
	shards, err := filepath.Glob(filepath.Join(dir, component, "*.safetensors"))
	if err != nil || len(shards) == 0 {
		g.Fatalf("no shards of %s: %v", component, err)
	}
	for _, shard := range shards {
		f, err := checkpoint.OpenFile(shard)
		if err != nil {
			g.Fatal(err)
		}
		g.Cleanup(func() { f.Close() })
		if t, ok := f.Tensor(name); ok {
			types := map[checkpoint.DType]compute.DType{checkpoint.F32: compute.F32, checkpoint.BF16: compute.BF16}
			w, err := g.device.Load(compute.Tensor{Name: name, DType: types[t.DType], Shape: t.Shape, Data: t.Data}, compute.UseVector, as)
			if err != nil {
				g.Fatal(err)
			}
			return w
		}
	}
	g.Fatalf("%s has no %s", component, name)
	return nil
}

// TestGoldenSampling draws with torch's own exponentials, and must draw what torch
// drew; a logit that is not finite is an error for us, where the reference mends it.
func TestGoldenSampling(t *testing.T) {
	var recorded struct {
		Sampling []struct {
			Name      string
			Restrict  bool
			FirstSeed uint64 `json:"first_seed"`
			Drawn     []int32
		}
	}
	forGolden(t, func(t *testing.T, g *golden) {
		readJSON(t, &recorded)
		for _, c := range recorded.Sampling {
			key := "sampling." + c.Name + "."
			cond, uncond := g.numbers(key+"cond"), g.numbers(key+"uncond")
			n := len(cond)
			logits := g.buffer(compute.F32, append(cond, uncond...))
			out, err := g.device.NewBuffer(compute.I32, 2)
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range c.Drawn {
				q := make([]float32, n)
				rng.NewTorch(c.FirstSeed+uint64(k)).Exponentials(n, []rng.Span{{Lo: 0, Hi: n}}, q)
				g.queue.Sample(compute.Sample{Logits: logits, Songs: 1, N: n, Guidance: 1.5, TopK: 50, Restrict: c.Restrict,
					Exponentials: g.buffer(compute.F32, q), Out: out, OutStride: 1})
				got := make([]int32, 2)
				if err := g.queue.DownloadInts(got, out); err != nil {
					t.Fatal(err)
				}
				if c.Name == "nan_and_infinity" {
					want = -1
				}
				if got[0] != want || got[1] != want {
					t.Errorf("%s, seed %d: drew %v, want %d", c.Name, c.FirstSeed+uint64(k), got, want)
				}
				g.values++
			}
		}
	})
}
