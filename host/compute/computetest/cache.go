package computetest

import (
	"fmt"
	"math"

	"skald/host/compute"
)

// songs is a cache with sequences of different lengths whose blocks lie out of order,
// and what should be in it.
type songs struct {
	*suite
	kv     compute.KVConfig
	d      compute.DType // of the activations
	cache  compute.KVCache
	blocks compute.Buffer
	most   int // blocks of one sequence

	lengths      []int
	keys, values map[place][]float32 // of one head, as stored
}

// place is one head at one position of one sequence in one layer; without layer and
// head it is a row of a batch.
type place struct{ layer, seq, pos, head int }

func (s *suite) songs(kv compute.KVConfig, d compute.DType, sequences, most int) *songs {
	s.Helper()
	kv.Blocks = sequences*most + 2
	cache, err := s.device.NewKVCache(kv)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { cache.Close() })
	if cache.Config() != kv {
		s.Fatalf("Config is %+v, want %+v", cache.Config(), kv)
	}
	table := make([]int32, sequences*most)
	for i, b := range s.rand.Perm(kv.Blocks)[:len(table)] {
		table[i] = int32(b)
	}
	return &songs{suite: s, kv: kv, d: d, cache: cache, blocks: s.ints(table...), most: most,
		lengths: make([]int, sequences), keys: map[place][]float32{}, values: map[place][]float32{}}
}

// next returns rows that extend each sequence by counts[seq] positions, in mixed order.
func (w *songs) next(counts ...int) (rows []place, at compute.Rows) {
	for seq, n := range counts {
		for range n {
			rows = append(rows, place{seq: seq, pos: w.lengths[seq]})
			w.lengths[seq]++
		}
	}
	w.rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows, w.rows(rows)
}

func (w *songs) rows(rows []place) compute.Rows {
	pos, seq := make([]int32, len(rows)), make([]int32, len(rows))
	for i, r := range rows {
		pos[i], seq[i] = int32(r.pos), int32(r.seq)
	}
	return compute.Rows{N: len(rows), Pos: w.ints(pos...), Seq: w.ints(seq...), Blocks: w.blocks, MaxBlocks: w.most}
}

// store appends random keys and values for rows, with two query heads to a key head,
// and returns the queries before and after.
//
// The cache cannot be read directly. So the keys are first given as queries too, under
// their own norm: what the device makes of those is what the cache must hold.
func (w *songs) store(layer int, rows []place, at compute.Rows, a compute.AppendKV) (before, after []float32) {
	n := w.kv.Heads * w.kv.HeadDim
	k, v := w.normal(len(rows)*n, 1, w.d), w.normal(len(rows)*n, 1, w.d)
	a.Cache, a.Layer, a.K, a.V = w.cache, layer, w.buffer(w.d, k), w.buffer(w.d, v)
	probe := a
	probe.Q, probe.QHeads, probe.QNorm = w.buffer(w.d, k), w.kv.Heads, a.KNorm
	w.queue.AppendKV(probe, at)
	keys := w.read(probe.Q)

	before = w.normal(2*len(rows)*n, 1, w.d)
	a.Q, a.QHeads = w.buffer(w.d, before), 2*w.kv.Heads
	w.queue.AppendKV(a, at)
	w.same("K is only read", w.read(a.K), k)
	w.same("V is only read", w.read(a.V), v)
	for i, r := range rows {
		for h := range w.kv.Heads {
			r.layer, r.head = layer, h
			lo, hi := (i*w.kv.Heads+h)*w.kv.HeadDim, (i*w.kv.Heads+h+1)*w.kv.HeadDim
			w.keys[r], w.values[r] = w.stored(keys[lo:hi]), w.stored(v[lo:hi])
		}
	}
	return before, w.read(a.Q)
}

// stored rounds to the type of the cache.
func (w *songs) stored(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(round(float64(v), w.kv.DType))
	}
	return y
}

// attend checks attention of rows with fresh queries, together and alone.
func (w *songs) attend(label string, layer int, rows []place, at compute.Rows, group int) {
	w.Helper()
	qHeads, d := w.kv.Heads*group, w.kv.HeadDim
	q := w.normal(len(rows)*qHeads*d, 1, w.d)
	scale := float32(1 / math.Sqrt(float64(d)))
	in, out := w.buffer(w.d, q), w.empty(w.d, len(q))
	w.queue.CachedAttention(out, in, w.cache, layer, qHeads, scale, at)
	got := w.read(out)
	var want []interval
	for i, r := range rows {
		for h := range qHeads {
			var keys, values [][]float32
			for p := range r.pos + 1 {
				at := place{layer, r.seq, p, h / group}
				keys, values = append(keys, w.keys[at]), append(values, w.values[at])
			}
			for _, y := range attended(q[(i*qHeads+h)*d:][:d], keys, values, float64(scale)) {
				want = append(want, y.store(w.d))
			}
		}
	}
	w.check(label, got, want)
	for i := range rows {
		lo, hi := i*qHeads*d, (i+1)*qHeads*d
		one := w.empty(w.d, hi-lo)
		w.queue.CachedAttention(one, in.Slice(lo, hi), w.cache, layer, qHeads, scale, w.rows(rows[i:i+1]))
		w.same(label+", row alone", w.read(one), got[lo:hi])
	}
}

// testAppendKV: norms and rotation of queries, and what arrives in the cache.
func testAppendKV(s *suite) {
	for _, c := range []struct {
		heads, headDim, rope int
		norm                 bool
	}{
		{1, 2, 2, true}, {3, 10, 6, true}, {2, 16, 16, false}, {2, 64, 64, true}, {2, 5, 0, true}, {1, 7, 4, false}, {4, 128, 128, true},
	} {
		for _, d := range floats {
			for _, cached := range floats {
				s.begin()
				w := s.songs(compute.KVConfig{Layers: 2, Heads: c.heads, HeadDim: c.headDim, BlockSize: 4, DType: cached}, d, 2, 3)
				table, cos, sin := s.ropeTable(12, c.rope, d)
				a := compute.AppendKV{Eps: 1e-5, Rope: table}
				var scale []float32
				if c.norm {
					scale = s.normal(c.headDim, 1, d)
					a.QNorm = s.weight(compute.UseVector, d, scale, c.headDim)
					a.KNorm = s.weight(compute.UseVector, d, s.normal(c.headDim, 1, d), c.headDim)
				}
				label := fmt.Sprintf("%+v, %v, cache %v", c, d, cached)
				for _, counts := range [][]int{{7, 2}, {1, 1}, {0, 1}} {
					rows, at := w.next(counts...)
					before, after := w.store(1, rows, at, a)
					var want []interval
					for i := 0; i < len(before); i += c.headDim {
						head := intervals(c.headDim, func(j int) interval { return exactly(before[i+j]) })
						if c.norm {
							head = rmsNormed(before[i:i+c.headDim], scale, 1e-5, d)
						}
						want = append(want, rotated(head, cos, sin, rows[i/c.headDim/c.heads/2].pos, c.rope, d)...)
					}
					s.check(label, after, want)
					w.attend(label, 1, rows, at, 1)
				}
			}
		}
	}
}

// testCachedAttention: ragged rows, grouped heads, block sizes that divide nothing.
func testCachedAttention(s *suite) {
	for _, c := range []struct{ heads, group, headDim, blockSize int }{
		{1, 1, 1, 1}, {2, 1, 5, 3}, {1, 4, 16, 16}, {2, 3, 64, 7}, {3, 2, 17, 5}, {8, 4, 128, 32}, {1, 1, 300, 64},
	} {
		for _, d := range floats {
			for _, cached := range floats {
				s.begin()
				w := s.songs(compute.KVConfig{Layers: 2, Heads: c.heads, HeadDim: c.headDim, BlockSize: c.blockSize, DType: cached}, d, 3, 70/c.blockSize+1)
				label := fmt.Sprintf("%+v, %v, cache %v", c, d, cached)
				for step, counts := range [][]int{{1, 17, 0}, {1, 1, 0}, {0, 1, 50}, {1, 1, 1}, {3, 0, 2}} {
					rows, at := w.next(counts...)
					for layer := range 2 {
						w.store(layer, rows, at, compute.AppendKV{})
					}
					w.attend(label, step%2, rows, at, c.group)
				}
			}
		}
	}
}

// testCopyBlock: a sequence whose blocks are copies reads the same.
func testCopyBlock(s *suite) {
	for _, cached := range floats {
		s.begin()
		w := s.songs(compute.KVConfig{Layers: 3, Heads: 2, HeadDim: 6, BlockSize: 4, DType: cached}, compute.F32, 2, 2)
		rows, at := w.next(7, 6)
		for layer := range 3 {
			w.store(layer, rows, at, compute.AppendKV{})
		}
		table := w.readInts(w.blocks)
		used := map[int32]bool{}
		for _, b := range table {
			used[b] = true
		}
		for b := range int32(w.kv.Blocks) {
			if !used[b] { // two blocks are free: move the first sequence there
				for i, from := range table[:2] {
					if !used[from] {
						continue
					}
					s.queue.CopyBlock(w.cache, int(b), int(from))
					table[i], used[from] = b, false
					break
				}
			}
		}
		s.queue.UploadInts(w.blocks, table)
		for layer := range 3 {
			w.attend(fmt.Sprintf("layer %d, cache %v", layer, cached), layer, rows, at, 1)
		}
	}
}
