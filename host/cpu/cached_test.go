package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skald/host/compute"
)

// TestCachedOfLevels compares scores and mix with their portable twins. A cache is full
// of NaN where nothing was written, so that a number which does not belong to a
// sequence cannot enter a result without being noticed.
func TestCachedOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		portable := portableKernels()
		values := 0
		for _, c := range []struct{ heads, group, headDim, blockSize, positions int }{
			{1, 1, 1, 1, 3}, {2, 1, 256, 8, 8}, {1, 4, 128, 32, 700}, {2, 3, 64, 7, 40}, {1, 5, 17, 5, 301}, {1, 8, 80, 33, 66}, {3, 2, 300, 16, 257}, {1, 1, 64, 300, 599},
		} {
			for _, d := range []compute.DType{compute.F32, compute.BF16} {
				for _, n := range []int{1, c.positions - 1, c.positions} {
					got := attendNaN(t, &k, c.heads, c.group, c.headDim, c.blockSize, n, d)
					want := attendNaN(t, &portable, c.heads, c.group, c.headDim, c.blockSize, n, d)
					for i, w := range want {
						// Values lie within -4 to 4; the weights are good to some roundings.
						if e := math.Abs(float64(got[i]) - float64(w)); !(e <= 40*0x1p-24) {
							t.Fatalf("%+v, %v, %d positions: number %d of %d is %v, want %v", c, d, n, i, len(want), got[i], w)
						}
					}
					values += len(want)
				}
			}
		}
		t.Logf("%d values", values)
	})
}

// attendNaN runs the last row of a sequence of n positions in a cache of NaN.
func attendNaN(t *testing.T, k *kernels, heads, group, headDim, blockSize, n int, dtype compute.DType) []float32 {
	t.Helper()
	r := rand.New(rand.NewPCG(4, uint64(n)))
	device := &device{}
	made, err := newKVCache(device, compute.KVConfig{Layers: 2, Heads: heads, HeadDim: headDim, BlockSize: blockSize, Blocks: ceilDiv(n, blockSize) + 1, DType: dtype})
	if err != nil {
		t.Fatal(err)
	}
	cache := made.(*kvCache)
	for i := range cache.floats {
		cache.floats[i] = float32(math.NaN())
	}
	for i := range cache.bits {
		cache.bits[i] = 0x7fc0
	}
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = roundBF16(float32(min(4, max(-4, r.NormFloat64()))))
		}
		return x
	}
	s := &scratch{kernels: k}
	blocks := make([]int32, ceilDiv(n, blockSize))
	for i, b := range r.Perm(len(blocks)) {
		blocks[i] = int32(b + 1)
	}
	for pos := range n {
		for h := range heads {
			cache.write(1, int(blocks[pos/blockSize]), h, pos%blockSize, random(headDim), random(headDim), s)
		}
	}
	q := random(heads * group * headDim)
	task := &cachedTask{cache: cache, layer: 1, q: q, o: make([]float32, len(q)), qHeads: heads * group, scale: float32(1 / math.Sqrt(float64(headDim)))}
	task.place(places{pos: []int32{int32(n - 1)}, seq: []int32{0}, blocks: blocks, maxBlocks: len(blocks)})
	for h := range heads {
		task.chunk(h, s)
	}
	return task.o
}

// TestCachedRuns: rows that go through the keys together give the bytes that each gives
// alone, whatever the order of their positions and wherever runs and sequences end.
func TestCachedRuns(t *testing.T) {
	var pos, seq []int32
	for i := range 2*runRows + 5 { // a prompt from its beginning
		pos, seq = append(pos, int32(i)), append(seq, 0)
	}
	for _, p := range []int32{590, 3, 255, 256, 599, 257, 0} { // another, in disorder
		pos, seq = append(pos, p), append(seq, 1)
	}
	pos, seq = append(pos, 300, 17, 301), append(seq, 0, 1, 0) // and rows that take turns
	for _, level := range Levels() {
		for _, d := range []compute.DType{compute.F32, compute.BF16} {
			for _, group := range []int{1, 3, 4} {
				const heads, headDim, blockSize, maxBlocks = 2, 40, 24, 25
				dev, err := New(Options{Level: level, Threads: 2})
				if err != nil {
					t.Fatal(err)
				}
				q, err := dev.NewQueue()
				if err != nil {
					t.Fatal(err)
				}
				cache, err := dev.NewKVCache(compute.KVConfig{Layers: 1, Heads: heads, HeadDim: headDim, BlockSize: blockSize, Blocks: 2 * maxBlocks, DType: d})
				if err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(5, 6))
				for i := range cache.(*kvCache).floats {
					cache.(*kvCache).floats[i] = float32(r.NormFloat64())
				}
				for i := range cache.(*kvCache).bits {
					cache.(*kvCache).bits[i] = bf16Bits(float32(r.NormFloat64()))
				}
				ints := func(v []int32) compute.Buffer {
					x, _ := dev.NewBuffer(compute.I32, len(v))
					q.UploadInts(x, v)
					return x
				}
				var blocks []int32
				for _, b := range r.Perm(2 * maxBlocks) {
					blocks = append(blocks, int32(b))
				}
				n, width := len(pos), heads*group*headDim
				at := compute.Rows{N: n, Pos: ints(pos), Seq: ints(seq), Blocks: ints(blocks), MaxBlocks: maxBlocks}
				x, _ := dev.NewBuffer(d, n*width)
				y, _ := dev.NewBuffer(d, n*width)
				one, _ := dev.NewBuffer(d, width)
				queries := make([]float32, n*width)
				for i := range queries {
					queries[i] = roundBF16(float32(r.NormFloat64()))
				}
				q.Upload(x, queries)
				q.CachedAttention(y, x, cache, 0, heads*group, 0.2, at)
				together, alone := make([]float32, n*width), make([]float32, width)
				if err := q.Download(together, y); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					row := at
					row.N, row.Pos, row.Seq = 1, at.Pos.Slice(i, i+1), at.Seq.Slice(i, i+1)
					q.CachedAttention(one, x.Slice(i*width, (i+1)*width), cache, 0, heads*group, 0.2, row)
					if err := q.Download(alone, one); err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(alone, together[i*width:(i+1)*width]) {
						t.Errorf("%s, %v, %d query heads to a key head: row %d at position %d differs from itself alone", level, d, group, i, pos[i])
					}
				}
				dev.Close()
			}
		}
	}
	t.Logf("%d rows, levels %v", len(pos), Levels())
}

// BenchmarkPrefillAttention is attention of 256 rows of one prompt late in it.
func BenchmarkPrefillAttention(b *testing.B) {
	const heads, group, headDim, blockSize, rows = 8, 4, 128, 32, 256
	for _, end := range []int{256, 1024, 4096} {
		b.Run(fmt.Sprint(end), func(b *testing.B) {
			dev, err := New(Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			q, _ := dev.NewQueue()
			cache, err := dev.NewKVCache(compute.KVConfig{Layers: 1, Heads: heads, HeadDim: headDim, BlockSize: blockSize, Blocks: end / blockSize, DType: compute.BF16})
			if err != nil {
				b.Fatal(err)
			}
			ints := func(n, from int) compute.Buffer {
				v := make([]int32, n)
				for i := range v {
					v[i] = int32(from + i)
				}
				x, _ := dev.NewBuffer(compute.I32, n)
				q.UploadInts(x, v)
				return x
			}
			seq, _ := dev.NewBuffer(compute.I32, rows)
			q.UploadInts(seq, make([]int32, rows))
			at := compute.Rows{N: rows, Pos: ints(rows, end-rows), Seq: seq, Blocks: ints(end/blockSize, 0), MaxBlocks: end / blockSize}
			x, _ := dev.NewBuffer(compute.BF16, rows*heads*group*headDim)
			y, _ := dev.NewBuffer(compute.BF16, rows*heads*group*headDim)
			for b.Loop() {
				q.CachedAttention(y, x, cache, 0, heads*group, 0.1, at)
			}
			flop := 4 * float64(heads*group*headDim) * float64(rows) * (float64(end) - rows/2)
			b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkCachedAttention reports the rate at which keys and values are read: two
// rows, late in a song, of a model with 8 key heads of 128 and 32 query heads.
func BenchmarkCachedAttention(b *testing.B) {
	const layers, heads, group, headDim, blockSize, positions = 4, 8, 4, 128, 32, 4096
	for _, l := range []level{levelGo, levelAVX2, levelAVX512} {
		for _, d := range []compute.DType{compute.F32, compute.BF16} {
			b.Run(fmt.Sprintf("%s/%v", l, d), func(b *testing.B) {
				dev, err := New(Options{Level: string(l)})
				if err != nil {
					b.Skip(err)
				}
				defer dev.Close()
				q, _ := dev.NewQueue()
				config := compute.KVConfig{Layers: layers, Heads: heads, HeadDim: headDim, BlockSize: blockSize, Blocks: 2 * positions / blockSize, DType: d}
				cache, err := dev.NewKVCache(config)
				if err != nil {
					b.Fatal(err)
				}
				ints := func(v ...int32) compute.Buffer {
					x, _ := dev.NewBuffer(compute.I32, len(v))
					q.UploadInts(x, v)
					return x
				}
				blocks := make([]int32, config.Blocks)
				for i := range blocks {
					blocks[i] = int32(i)
				}
				at := compute.Rows{N: 2, Pos: ints(positions-1, positions-1), Seq: ints(0, 1), Blocks: ints(blocks...), MaxBlocks: positions / blockSize}
				x, _ := dev.NewBuffer(d, 2*heads*group*headDim)
				y, _ := dev.NewBuffer(d, 2*heads*group*headDim)
				for b.Loop() {
					for layer := range layers {
						q.CachedAttention(y, x, cache, layer, heads*group, 0.1, at)
					}
				}
				b.ReportMetric(float64(config.Bytes())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
			})
		}
	}
}
