package cpu

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"skald/host/cpu/internal/peak"
)

// Rates are what this machine can do, measured: no stage of a model can be faster.
type Rates struct {
	Read float64 // bytes read from memory a second
	FP32 float64 // FLOP a second in float32 multiply-adds; 0 where there is no loop for it
	BF16 float64 // FLOP a second in products of bfloat16 tiles; 0 on machines without
}

// MeasureRates measures with the given number of threads, for about two seconds.
func MeasureRates(threads int) Rates {
	available, _ := machineLevels()
	r := Rates{Read: readRate(threads, slices.Contains(available, levelAVX512))}
	switch {
	case slices.Contains(available, levelAVX512):
		r.FP32 = multiplyRate(threads, func() float64 { return peak.FMA(64, 2_000_000) })
	case slices.Contains(available, levelAVX2):
		r.FP32 = multiplyRate(threads, func() float64 { return peak.FMA(32, 2_000_000) })
	}
	if slices.Contains(available, levelAMX) {
		r.BF16 = multiplyRate(threads, func() float64 { return peak.Tiles(500_000) })
	}
	return r
}

// together runs f on all threads at once and returns the seconds until the last is done.
func together(threads int, f func(thread int)) float64 {
	var all sync.WaitGroup
	start := time.Now()
	for t := range threads {
		all.Go(func() { f(t) })
	}
	all.Wait()
	return time.Since(start).Seconds()
}

// readRate reads far more than the caches hold, in eight streams for each thread: that
// many keep more lines under way than one does.
func readRate(threads int, vectors bool) float64 {
	const streams, words = 8, 4 << 20 // 32 MB to a stream
	memory := make([][]uint64, threads)
	sums := make([]uint64, threads)
	together(threads, func(t int) {
		memory[t] = make([]uint64, streams*words)
		for i := range memory[t] {
			memory[t][i] = uint64(i)
		}
	})
	best := 0.0
	for range 5 {
		took := together(threads, func(t int) {
			if vectors {
				peak.Read(bytesOf(memory[t]), streams*1024)
			} else {
				sums[t] += readStreams(memory[t], words)
			}
		})
		best = max(best, float64(threads*streams*words)*float64(unsafe.Sizeof(sums[0]))/took)
	}
	return best
}

// readStreams reads eight streams side by side, a cache line of each in turn.
func readStreams(m []uint64, words int) (sum uint64) {
	a, b, c, d := m[:words], m[words:2*words], m[2*words:3*words], m[3*words:4*words]
	e, f, g, h := m[4*words:5*words], m[5*words:6*words], m[6*words:7*words], m[7*words:8*words]
	for i := 0; i+8 <= words; i += 8 {
		sum += line(a[i:i+8]) + line(b[i:i+8]) + line(c[i:i+8]) + line(d[i:i+8])
		sum += line(e[i:i+8]) + line(f[i:i+8]) + line(g[i:i+8]) + line(h[i:i+8])
	}
	return sum
}

func line(x []uint64) uint64 {
	x = x[:8:8]
	return x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]
}

// bytesOf views numbers as bytes.
func bytesOf(v []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 8*len(v))
}

// multiplyRate runs f, which returns its FLOP, on all threads.
func multiplyRate(threads int, f func() float64) float64 {
	best := 0.0
	for range 5 {
		n := make([]float64, threads)
		took := together(threads, func(t int) { n[t] = f() })
		total := 0.0
		for _, x := range n {
			total += x
		}
		best = max(best, total/took)
	}
	return best
}
