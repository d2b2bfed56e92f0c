package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	task := &cachedTask{cache: cache, layer: 1, q: q, o: make([]float32, len(q)), qHeads: heads * group, scale: float32(1 / math.Sqrt(float64(headDim))),
		at: places{pos: []int32{int32(n - 1)}, seq: []int32{0}, blocks: blocks, maxBlocks: len(blocks)}}
	for h := range heads {
		task.chunk(h, s)
	}
	return task.o
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
