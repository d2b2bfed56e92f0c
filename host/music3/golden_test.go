package music3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/refdata"
)

// operations compares parts of the model with recorded results of the reference's
// modules, in one precision.
type operations struct {
	t      *testing.T
	file   *checkpoint.File
	prefix string // fp32 or bf16
	model  *Model
	queue  compute.Queue
	dtype  compute.DType

	tensors, values int
	worst           map[string]float64 // RMS ratio, by operation
}

// The bounds on the RMS ratio that golden/README.md asks for.
var operationRatio = map[string]float64{"fp32": 1e-5, "bf16": 0.03}

func TestGoldenOperations(t *testing.T) {
	shared := refdata.Shared(t, "the operations of two checkpoints, as the reference's modules compute them")
	for _, set := range []struct{ model, ops string }{{"tiny", "ops"}, {"aligned", "ops_aligned"}} {
		for _, p := range []Precision{FP32, BF16} {
			t.Run(set.model+"/"+string(p), func(t *testing.T) {
				o := newOperations(t, filepath.Join(shared, "golden", set.model), filepath.Join(shared, "golden", set.ops, "ops.safetensors"), p)
				o.rope()
				o.languageModel()
				o.depthDecoder()
				o.conditionEncoder()
				o.time()
				o.block()
				o.flowTransformer()
				o.vocoder()
				t.Logf("%d tensors, %d values compared; worst RMS ratios %v", o.tensors, o.values, o.worst)
			})
		}
	}
}

func newOperations(t *testing.T, dir, file string, p Precision) *operations {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	f, err := checkpoint.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := Load(context.Background(), dev, ck, ck.Config, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	return &operations{t: t, file: f, prefix: string(p), model: m, queue: q, dtype: p.Language(), worst: map[string]float64{}}
}

// get reads a recorded tensor; the type of the run stands in the middle of its name.
func (o *operations) get(op, name string) ([]float32, []int) {
	o.t.Helper()
	full := fmt.Sprintf("%s.%s.%s", op, o.prefix, name)
	x, ok := o.file.Tensor(full)
	if !ok {
		o.t.Fatalf("no tensor %q", full)
	}
	d, err := dtypeOf(x.DType)
	if err != nil {
		o.t.Fatal(err)
	}
	v, err := decode(compute.Tensor{Name: full, DType: d, Data: x.Data})
	if err != nil {
		o.t.Fatal(err)
	}
	return v, x.Shape
}

func (o *operations) ints(name string) []int32 {
	x, ok := o.file.Tensor(name)
	if !ok {
		o.t.Fatalf("no tensor %q", name)
	}
	out := make([]int32, x.Elements())
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(x.Data[4*i:]))
	}
	return out
}

func (o *operations) alloc() *allocator { return &allocator{dev: o.model.dev} }

func (o *operations) up(v []float32) compute.Buffer {
	a := o.alloc()
	b := a.upload(o.dtype, v)
	if a.err != nil {
		o.t.Fatal(a.err)
	}
	return b
}

func (o *operations) down(b compute.Buffer, n int) []float32 {
	v := make([]float32, n)
	if err := o.queue.Download(v, b); err != nil {
		o.t.Fatal(err)
	}
	return v
}

// check compares with a recorded tensor; limit 0 is the bound of the precision.
func (o *operations) check(op, name string, got []float32, limit float64) {
	o.t.Helper()
	want, _ := o.get(op, name)
	o.same(op, name, got, want, limit)
}

func (o *operations) same(op, name string, got, want []float32, limit float64) {
	o.t.Helper()
	if limit == 0 {
		limit = operationRatio[o.prefix]
	}
	if len(got) != len(want) {
		o.t.Errorf("%s.%s has %d values, recorded %d", op, name, len(got), len(want))
		return
	}
	var diff, norm float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		diff, norm = diff+d*d, norm+float64(w)*float64(w)
	}
	ratio := math.Sqrt(diff / norm)
	o.tensors, o.values = o.tensors+1, o.values+len(want)
	o.worst[op] = max(o.worst[op], ratio)
	if !(ratio <= limit) {
		o.t.Errorf("%s.%s: RMS ratio %.3e, allowed %.0e", op, name, ratio, limit)
	}
}

func (o *operations) rope() {
	positions := o.ints("rope.positions")
	cfg := o.model.lm.cfg
	a := o.alloc()
	table := makeRope(a, int(positions[len(positions)-1])+1, cfg.HeadDim, cfg.RopeTheta, o.dtype)
	half := cfg.HeadDim / 2
	for _, x := range []struct {
		name string
		b    compute.Buffer
	}{{"language_model_cos", table.Cos}, {"language_model_sin", table.Sin}} {
		var got []float32
		for _, p := range positions {
			row := o.down(x.b.Slice(int(p)*half, (int(p)+1)*half), half)
			got = append(append(got, row...), row...) // the reference repeats the frequencies
		}
		o.check("rope", x.name, got, 0)
	}
	if o.prefix != "fp32" {
		return
	}
	rows, dim := o.ints("rope.transformer_rows"), o.model.flow.cfg.RotaryDim
	table = makeRope(a, int(rows[len(rows)-1])+1, dim, flowTheta, compute.F32)
	for name, b := range map[string]compute.Buffer{"rope.transformer_cos": table.Cos, "rope.transformer_sin": table.Sin} {
		var got []float32
		for _, p := range rows {
			row := o.down(b.Slice(int(p)*dim/2, (int(p)+1)*dim/2), dim/2)
			got = append(append(got, row...), row...)
		}
		x, _ := o.file.Tensor(name)
		want, _ := decode(compute.Tensor{DType: compute.F32, Data: x.Data})
		o.same("rope", name, got, want, 0)
	}
}

// languageModel runs 10 positions of two sequences, as 7 + 1 + 1 + 1, through layer 0
// and through the whole stack.
func (o *operations) languageModel() {
	x, shape := o.get("lm", "x")
	batch, length, width := shape[0], shape[1], shape[2]
	one := *o.model.lm
	one.layers = one.layers[:1]
	for _, run := range []struct {
		name string
		lm   *LanguageModel
	}{{"layer0", &one}, {"model", o.model.lm}} {
		cache, err := o.model.dev.NewKVCache(run.lm.kvConfig(batch))
		if err != nil {
			o.t.Fatal(err)
		}
		got := make([]float32, len(x))
		for _, span := range [][2]int{{0, 7}, {7, 8}, {8, 9}, {9, 10}} {
			n := span[1] - span[0]
			a := o.alloc()
			b := run.lm.newBuffers(a, batch*n)
			var pos, seq []int32
			for s := range batch {
				o.queue.Upload(b.h.Slice(s*n*width, (s+1)*n*width), x[(s*length+span[0])*width:(s*length+span[1])*width])
				for p := span[0]; p < span[1]; p++ {
					pos, seq = append(pos, int32(p)), append(seq, int32(s))
				}
			}
			at := o.place(pos, seq, batch)
			run.lm.forward(o.queue, b, cache, at)
			out := b.n
			if run.name == "layer0" {
				out = b.h // before the final norm
			}
			for s := range batch {
				copy(got[(s*length+span[0])*width:], o.down(out.Slice(s*n*width, (s+1)*n*width), n*width))
			}
		}
		o.check("lm", run.name, got, 0)
	}
}

// place puts sequence s into block s.
func (o *operations) place(pos, seq []int32, sequences int) compute.Rows {
	ints := func(v []int32) compute.Buffer {
		b, err := o.model.dev.NewBuffer(compute.I32, len(v))
		if err != nil {
			o.t.Fatal(err)
		}
		o.queue.UploadInts(b, v)
		return b
	}
	blocks := make([]int32, sequences)
	for i := range blocks {
		blocks[i] = int32(i)
	}
	return compute.Rows{N: len(pos), Pos: ints(pos), Seq: ints(seq), Blocks: ints(blocks), MaxBlocks: 1}
}

// depthDecoder feeds recorded inputs position by position through the cache.
func (o *operations) depthDecoder() {
	d := o.model.depth
	raw, shape := o.get("depth", "raw")
	batch, books, h := shape[0], shape[1], shape[2]
	projected := make([]float32, len(raw))
	hidden := make([]float32, len(raw))
	logits := make([]float32, batch*(books-1)*d.cfg.AudioVocabSize)
	cache, err := o.model.dev.NewKVCache(d.kvConfig(batch))
	if err != nil {
		o.t.Fatal(err)
	}
	a := o.alloc()
	b := d.newBuffers(a, batch)
	for p := range books {
		var pos, seq []int32
		for s := range batch {
			o.queue.Upload(b.raw.Slice(s*h, (s+1)*h), raw[(s*books+p)*h:(s*books+p+1)*h])
			pos, seq = append(pos, int32(p)), append(seq, int32(s))
		}
		o.queue.Linear(b.raw, batch, compute.Linear{Y: b.n, W: d.projection})
		for s := range batch {
			copy(projected[(s*books+p)*h:], o.down(b.n.Slice(s*h, (s+1)*h), h))
		}
		o.queue.Add(b.h.Slice(0, batch*h), b.n.Slice(0, batch*h), d.positions[p])
		d.forward(o.queue, b, cache, o.place(pos, seq, batch))
		for s := range batch {
			copy(hidden[(s*books+p)*h:], o.down(b.n.Slice(s*h, (s+1)*h), h))
		}
		if p == 0 {
			continue
		}
		n := d.cfg.AudioVocabSize
		o.queue.Linear(b.n, batch, compute.Linear{Y: b.logits, W: d.heads[p-1]})
		for s := range batch {
			copy(logits[(s*(books-1)+p-1)*n:], o.down(b.logits.Slice(s*n, (s+1)*n), n))
		}
	}
	o.check("depth", "projected", projected, 0)
	o.check("depth", "hidden", hidden, 0)
	o.check("depth", "logits", logits, 0)
	o.feedback(h)
}

// feedback embeds a frame's codes for the language model.
func (o *operations) feedback(h int) {
	loop, err := o.model.NewFrameLoop(1, 64)
	if err != nil {
		o.t.Fatal(err)
	}
	defer loop.Close()
	codes := o.ints("depth." + o.prefix + ".feedback_codes")
	loop.uploadCodes([]*Voice{{codes: codes}})
	b, _ := o.model.dev.NewBuffer(o.dtype, 2*h)
	loop.queue.EmbedSum(b, 2, loop.codes, len(codes), loop.frameParts, loop.frameScale)
	if err := loop.queue.Sync(); err != nil {
		o.t.Fatal(err)
	}
	got := o.down(b, 2*h)
	o.check("depth", "feedback", got[:h], 1e-6) // to the bit, or one rounding of float32
	o.same("depth", "feedback of the other row", got[h:], got[:h], 1e-30)
}

func (o *operations) conditionEncoder() {
	e := o.model.cond
	for _, n := range []int{1, 2, 5, 32} {
		name := fmt.Sprintf("frames%d.", n)
		x, _ := o.get("condition", name+"x")
		a := o.alloc()
		b := e.newBuffers(a, n)
		cond := a.buffer(o.dtype, Latents(e.cfg, n)*e.cfg.OutDim)
		if a.err != nil {
			o.t.Fatal(a.err)
		}
		o.queue.Upload(b.frames, x)
		e.forward(o.queue, cond, b, n)
		o.check("condition", name+"y", o.down(cond, cond.Len()), 0)
	}
}

func (o *operations) time() {
	f := o.model.flow
	ts, _ := o.get("transformer", "t")
	steps := make([]eulerStep, len(ts))
	for i, t := range ts {
		steps[i].t = t
	}
	o.check("transformer", "time_proj", f.timeFeatures(steps), 0)
	a := o.alloc()
	b := f.newBuffers(a, 1, 1, len(ts))
	if err := f.timeTokens(o.queue, a, b, steps); err != nil {
		o.t.Fatal(err)
	}
	o.check("transformer", "time_embed", o.down(b.times, b.times.Len()), 0)
}

func (o *operations) block() {
	f := o.model.flow
	x, shape := o.get("transformer", "block_x")
	a := o.alloc()
	b := f.newBuffers(a, shape[1]-1, shape[0], 1)
	w, n := f.blocks[0], shape[0]*shape[1]
	o.queue.Upload(b.h, x)
	f.attend(o.queue, b, w)
	o.queue.Linear(b.o, n, compute.Linear{Y: b.n, W: w.o})
	o.check("transformer", "attention_y", o.down(b.n, len(x)), 0)
	o.queue.Linear(b.o, n, compute.Linear{Y: b.h, W: w.o, Residual: b.h})
	f.feedForward(o.queue, b, w)
	o.check("transformer", "block_y", o.down(b.h, len(x)), 0)
}

func (o *operations) flowTransformer() {
	f := o.model.flow
	ts, _ := o.get("transformer", "t")
	for _, length := range []int{1, 3, 21, 86} {
		name := fmt.Sprintf("length%d.", length)
		x, _ := o.get("transformer", name+"x")
		c, _ := o.get("transformer", name+"cond")
		a := o.alloc()
		b := f.newBuffers(a, length, 1, 2)
		if err := f.timeTokens(o.queue, a, b, []eulerStep{{t: ts[1]}, {t: ts[3]}}); err != nil {
			o.t.Fatal(err)
		}
		o.queue.Upload(b.x, transpose(x, f.cfg.InChannels, length))
		o.queue.Upload(b.cond, c)
		f.setCondition(o.queue, b)
		for i, t := range []int{1, 3} {
			f.forward(o.queue, b, i)
			got := transpose(o.down(b.velocity, b.velocity.Len()), length, f.cfg.InChannels)
			o.check("transformer", fmt.Sprintf("%st%d.velocity", name, t), got, 0)
		}
	}
}

func (o *operations) vocoder() {
	v := o.model.voc
	channels := v.cfg.LatentChannels
	limit := map[string]float64{"fp32": 3e-5, "bf16": 0.1}[o.prefix]
	never := func(int, int) error { return nil }
	for _, length := range []int{1, 3, 10} {
		name := fmt.Sprintf("length%d.", length)
		x, _ := o.get("vocoder", name+"x")
		a := o.alloc()
		b := v.newBuffers(a, length)
		if err := v.forward(o.queue, b, o.up(transpose(x, channels, length)), length, never); err != nil {
			o.t.Fatal(err)
		}
		o.check("vocoder", name+"y", o.down(b.wave, 2*v.Samples(length)), limit)
	}
	// Stage by stage: the recorded input holds both streams, channels first.
	x, shape := o.get("vocoder", "stages.x")
	length := shape[2]
	a := o.alloc()
	b := v.newBuffers(a, length)
	err := v.forward(o.queue, b, o.up(transpose(x, channels, length)), length, func(done, _ int) error {
		name := "stages.conv_in"
		if done > 2 {
			return nil
		}
		if done > 0 {
			name = fmt.Sprintf("stages.block%d", done-1)
		}
		want, shape := o.get("vocoder", name)
		streams, width, n := shape[0], shape[1], shape[2]
		got := o.down(b.x, streams*n*width)
		flipped := append(transpose(got[:n*width], n, width), transpose(got[n*width:], n, width)...)
		o.same("vocoder", name, flipped, want, limit)
		return nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// TestGoldenTables compares the schedules and the arithmetic of windows.
func TestGoldenTables(t *testing.T) {
	shared := refdata.Shared(t, "Euler schedules, window and duration tables")
	checked := 0
	for _, set := range []struct{ model, ops string }{{"tiny", "ops"}, {"aligned", "ops_aligned"}} {
		var facts struct {
			Euler map[string]struct {
				T, DT           []string
				NoiseWeight     []string `json:"noise_weight"`
				TBF16           []string `json:"t_bf16"`
				NoiseWeightBF16 []string `json:"noise_weight_bf16"`
			}
			Latents map[string]int `json:"latents_of_frames"`
			Windows map[string]struct {
				Starts         []int
				Count, Samples int
				Last           int `json:"last_latents"`
			} `json:"windows_of_frames"`
			Durations [][2]float64 `json:"frames_of_duration"`
		}
		data, err := os.ReadFile(filepath.Join(shared, "golden", set.ops, "ops.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &facts); err != nil {
			t.Fatal(err)
		}
		ck, err := checkpoint.Open(filepath.Join(shared, "golden", set.model))
		if err != nil {
			t.Fatal(err)
		}
		defer ck.Close()
		m := &Model{Config: ck.Config}
		same := func(what string, got float32, bits string) {
			checked++
			want, err := strconv.ParseUint(bits, 16, 32)
			if err != nil || math.Float32bits(got) != uint32(want) {
				t.Errorf("%s is %08x, recorded %s", what, math.Float32bits(got), bits)
			}
		}
		for name, e := range facts.Euler {
			n, _ := strconv.Atoi(name)
			steps := schedule(n, ck.Config.Scheduler)
			low := rounded(steps)
			for k := range steps {
				at := fmt.Sprintf("step %d of %d: ", k, n)
				same(at+"t", steps[k].t, e.T[k])
				same(at+"dt", steps[k].dt, e.DT[k])
				same(at+"noise weight", steps[k].noiseWeight, e.NoiseWeight[k])
				same(at+"t in bfloat16", low[k].t, e.TBF16[k])
				same(at+"noise weight in bfloat16", low[k].noiseWeight, e.NoiseWeightBF16[k])
			}
		}
		for name, want := range facts.Latents {
			n, _ := strconv.Atoi(name)
			checked++
			if got := Latents(ck.Config.ConditionEncoder, n); got != want {
				t.Errorf("%d frames are %d latents, recorded %d", n, got, want)
			}
		}
		for name, want := range facts.Windows {
			n, _ := strconv.Atoi(name)
			checked++
			ws, samples := Windows(ck.Config.ConditionEncoder, n), 0
			for _, w := range ws {
				samples += w.Latents*ck.Config.ConditionEncoder.OutputHopLength - w.Left - w.Right
			}
			last := ws[len(ws)-1]
			if len(ws) != want.Count || samples != want.Samples || last.Latents != want.Last || last.Start != want.Starts[len(want.Starts)-1] {
				t.Errorf("%d frames: %d windows, %d samples, the last %+v; recorded %+v", n, len(ws), samples, last, want)
			}
		}
		for _, d := range facts.Durations {
			checked++
			got, err := m.Frames(d[0])
			if int(d[1]) == 0 {
				if err == nil {
					t.Errorf("%v s gave %d frames, expected an error", d[0], got)
				}
			} else if got != int(d[1]) {
				t.Errorf("%v s are %d frames, recorded %v", d[0], got, d[1])
			}
		}
	}
	t.Logf("%d values compared", checked)
}
