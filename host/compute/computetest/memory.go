package computetest

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"skald/host/compute"
)

// testMemory: Upload, Download, Copy, Zero, Slice.
func testMemory(s *suite) {
	for _, n := range []int{1, 3, 17, 65, 5000} {
		values := s.normal(n, 3, compute.F32)
		values[0] = 1 + 1.0/256 // halfway between two bfloat16, the even one below
		if n > 2 {
			values[1] = 1 + 3.0/256 // halfway, the even one above
			values[2] = math.MaxFloat32
		}
		for _, to := range floats {
			s.begin()
			want := intervals(n, func(i int) interval { return exactly(values[i]).store(to) })
			uploaded := s.buffer(to, values)
			s.check("Upload", s.read(uploaded), want)

			copied := s.empty(to, n+2)
			s.queue.Zero(copied)
			s.queue.Copy(copied.Slice(1, n+1), s.buffer(compute.F32, values))
			got := s.read(copied)
			s.check("Copy", got[1:n+1], want)
			s.same("around Copy", []float32{got[0], got[n+1]}, []float32{0, 0})

			widened := s.empty(compute.F32, n)
			s.queue.Copy(widened, uploaded)
			s.check("Copy to F32", s.read(widened), want)

			if got := uploaded.Slice(0, n).Len(); got != n || uploaded.DType() != to {
				s.Errorf("Slice has length %d, type %v", got, uploaded.DType())
			}
			s.queue.Zero(uploaded)
			s.check("Zero", s.read(uploaded), make([]interval, n))
		}
		s.begin()
		numbers := make([]int32, n)
		for i := range numbers {
			numbers[i] = int32(s.rand.Uint32())
		}
		b := s.ints(numbers...)
		s.sameInts("UploadInts", s.readInts(b), numbers)
		s.queue.Zero(b)
		s.sameInts("Zero", s.readInts(b), make([]int32, n))
		b.Free()
	}
}

// testRecord: a recording reads its buffers when it runs.
func testRecord(s *suite) {
	for _, d := range floats {
		s.begin()
		table := s.weight(compute.UseTable, d, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2)
		ids, y := s.ints(0), s.empty(d, 2)
		r, err := s.queue.Record(func(q compute.Queue) {
			q.EmbedSum(y, 1, ids, 1, []compute.TablePart{{Table: table}}, 1)
			q.Add(y, y, y)
		})
		if err != nil {
			s.Fatal(err)
		}
		for _, id := range []int32{2, 0, 3} {
			s.queue.UploadInts(ids, []int32{id})
			r.Run()
			s.same("recording", s.read(y), []float32{2 * float32(2*id+1), 2 * float32(2*id+2)})
		}
		if err := r.Close(); err != nil {
			s.Error(err)
		}
	}
}

// testFailure: a failure is kept, reported once, and stops what follows.
func testFailure(s *suite) {
	table := s.weight(compute.UseTable, compute.F32, []float32{1, 2, 3, 4}, 2, 2)
	for _, id := range []int32{-1, 2, math.MaxInt32} {
		s.begin()
		y := s.buffer(compute.F32, []float32{7, 8})
		s.queue.EmbedSum(y, 1, s.ints(id), 1, []compute.TablePart{{Table: table}}, 1)
		s.queue.Zero(y)
		if err := s.queue.Sync(); err == nil {
			s.Errorf("id %d of a table of 2 rows: no failure", id)
		}
		if err := s.queue.Sync(); err != nil {
			s.Errorf("the failure was not forgotten: %v", err)
		}
		s.same("after a failure", s.read(y), []float32{7, 8})
	}
}

// testMisuse: wrong arguments panic with the operation's name.
func testMisuse(s *suite) {
	const n = 6
	f32, bf16, ints := s.empty(compute.F32, n), s.empty(compute.BF16, n), s.empty(compute.I32, n)
	short := f32.Slice(0, n-1)
	matrix := s.weight(compute.UseLinear, compute.F32, make([]float32, 4), 2, 2)
	vector := s.weight(compute.UseVector, compute.F32, make([]float32, 2), 2)
	kernel := s.weight(compute.UseConv, compute.F32, make([]float32, 4), 2, 2, 1)
	cache, err := s.device.NewKVCache(compute.KVConfig{Layers: 1, Heads: 1, HeadDim: 2, BlockSize: 2, Blocks: 1, DType: compute.F32})
	if err != nil {
		s.Fatal(err)
	}
	defer cache.Close()
	other := s.empty(compute.F32, n)
	q := s.queue
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"Upload", func() { q.Upload(short, make([]float32, n)) }},
		{"Upload", func() { q.Upload(ints, make([]float32, n)) }},
		{"UploadInts", func() { q.UploadInts(f32, make([]int32, n)) }},
		{"Download", func() { q.Download(make([]float32, n), short) }},
		{"Copy", func() { q.Copy(short, f32) }},
		{"Copy", func() { q.Copy(ints, f32) }},
		{"Linear", func() { q.Linear(f32, 3, compute.Linear{Y: short, W: matrix}) }},
		{"Linear", func() { q.Linear(f32, 3, compute.Linear{Y: bf16, W: matrix}) }},
		{"Linear", func() { q.Linear(f32, 4, compute.Linear{Y: other, W: matrix}) }},
		{"Linear", func() { q.Linear(f32, 3, compute.Linear{Y: other, W: kernel}) }},
		{"Linear", func() { q.Linear(nil, 3, compute.Linear{Y: other, W: matrix}) }},
		{"EmbedSum", func() { q.EmbedSum(f32, 2, f32, 1, []compute.TablePart{{Table: matrix}}, 1) }},
		{"EmbedSum", func() { q.EmbedSum(short, 3, ints, 1, []compute.TablePart{{Table: matrix}}, 1) }},
		{"AppendKV", func() {
			q.AppendKV(compute.AppendKV{Cache: cache, Layer: 1, Q: f32, K: f32, V: f32, QHeads: 1}, compute.Rows{N: 1, Pos: ints, Seq: ints, Blocks: ints, MaxBlocks: 1})
		}},
		{"CachedAttention", func() {
			q.CachedAttention(other, f32, cache, 0, 1, 1, compute.Rows{N: 4, Pos: ints, Seq: ints, Blocks: ints, MaxBlocks: 1})
		}},
		{"CopyBlock", func() { q.CopyBlock(cache, 0, 1) }},
		{"Rope", func() {
			q.Rope(f32, 1, 3, 1, 2, compute.RopeTable{Cos: short.Slice(0, 2), Sin: short.Slice(0, 2), Dim: 2})
		}},
		{"FullAttention", func() { q.FullAttention(other, f32, short, f32, 1, 3, 1, 2, 1) }},
		{"RMSNorm", func() { q.RMSNorm(short, f32, vector, 3, 0) }},
		{"LayerNorm", func() { q.LayerNorm(other, f32, vector, nil, 3, 0) }},
		{"SwiGLU", func() { q.SwiGLU(f32, short, f32) }},
		{"ValueSiLU", func() { q.ValueSiLU(f32, other, 1) }},
		{"SiLU", func() { q.SiLU(f32, bf16) }},
		{"Tanh", func() { q.Tanh(f32, short) }},
		{"Add", func() { q.Add(f32, other, other.Slice(0, 4)) }},
		{"Snake", func() { q.Snake(f32, f32, vector, 4) }},
		{"Finite", func() { q.Finite(f32, f32) }},
		{"Conv1D", func() { q.Conv1D(other, f32, compute.Conv{Batch: 1, Length: 4, W: kernel, Dilation: 1}) }},
		{"Conv1D", func() { q.Conv1D(other, f32, compute.Conv{Batch: 1, Length: 3, W: matrix, Dilation: 1}) }},
		{"ConvTranspose1D", func() { q.ConvTranspose1D(other, f32, compute.Conv{Batch: 1, Length: 3, W: kernel, Stride: 1}) }},
		{"Sample", func() {
			q.Sample(compute.Sample{Logits: f32, Songs: 1, N: 4, TopK: 1, Exponentials: other, Out: ints, OutStride: 1})
		}},
		{"MixLayers", func() { q.MixLayers(other, f32, 2, 2, []float32{1, 2}, 1) }},
		{"NearestRows", func() { q.NearestRows(short, 3, other, 3, 2) }},
		{"SplitChannels", func() { q.SplitChannels(other, f32, 2, 3, 2) }},
		{"Blend", func() { q.Blend(short, f32, other, 1, 1) }},
		{"EulerStep", func() { q.EulerStep(f32, short, nil, 1, 1) }},
	} {
		s.begin()
		message := panicOf(c.f)
		if !strings.Contains(message, c.op) {
			s.Errorf("%s, case %d: panic %q, want one that names the operation", c.op, s.cases, message)
		}
		s.values++
	}
}

func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// testQueues: queues run side by side and do not disturb each other.
func testQueues(s *suite) {
	const rows, k, n, queues, times = 33, 70, 90, 3, 20
	w := s.weight(compute.UseLinear, compute.F32, s.normal(n*k, 1, compute.F32), n, k)
	x := s.buffer(compute.F32, s.normal(rows*k, 1, compute.F32))
	y := s.empty(compute.F32, rows*n)
	s.queue.Linear(x, rows, compute.Linear{Y: y, W: w})
	want := s.read(y)
	results := make([][]float32, queues)
	var group sync.WaitGroup
	for i := range results {
		q, err := s.device.NewQueue()
		if err != nil {
			s.Fatal(err)
		}
		y := s.empty(compute.F32, rows*n)
		results[i] = make([]float32, rows*n)
		group.Go(func() {
			defer q.Close()
			for range times {
				q.Zero(y)
				q.Linear(x, rows, compute.Linear{Y: y, W: w})
				q.SiLU(y, y)
				q.Linear(x, rows, compute.Linear{Y: y, W: w})
			}
			if err := q.Download(results[i], y); err != nil {
				s.Error(err)
			}
		})
	}
	group.Wait()
	for _, got := range results {
		s.begin()
		s.same("side by side", got, want)
	}
}
