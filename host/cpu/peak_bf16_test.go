//go:build linux

package cpu_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/cpu/internal/peak"
)

// bits loads a matrix of bfloat16 numbers between 1 and 2; time does not depend on
// values.
func (b bench) bits(n, k int) (compute.Weight, []byte) {
	data := make([]byte, 2*n*k)
	for i := range data {
		data[i] = [2]byte{byte(i * 5 >> 3), 0x3f}[i%2] | byte(i%2*0x80)>>1
	}
	w, err := b.device.Load(compute.Tensor{Name: "w", DType: compute.BF16, Shape: []int{n, k}, Data: data}, compute.UseLinear, compute.BF16)
	if err != nil {
		b.Fatal(err)
	}
	return w, data
}

// BenchmarkFewRowsBF16 multiplies a few rows with matrices that are in memory, not in
// a cache, and compares with nothing but reading others of them.
func BenchmarkFewRowsBF16(b *testing.B) {
	const n, k, matrices = 12288, 4096, 11
	s := newBench(b, cpu.Options{})
	if !strings.Contains(s.device.Info().Detail, "avx512") && !strings.Contains(s.device.Info().Detail, "amx") {
		b.Skip("NOT EXAMINED: no AVX-512 to read with")
	}
	threads := s.device.Info().Threads
	var ring []compute.Weight
	var data [][]byte
	for range matrices {
		w, bytes := s.bits(n, k)
		ring, data = append(ring, w), append(data, bytes)
	}
	read := func(p []byte) float64 {
		var all sync.WaitGroup
		for i := range threads {
			all.Go(func() { peak.Read(p[len(p)/threads*i:len(p)/threads*(i+1)], 2*k) })
		}
		all.Wait()
		return float64(len(p))
	}
	for _, rows := range []int{1, 2, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			x, y := s.buffer(compute.BF16, rows*k), s.buffer(compute.BF16, rows*n)
			var rates, shares []float64
			for i := 0; b.Loop(); i++ {
				bound := rateOf(func() float64 { return read(data[(i+matrices/2)%matrices]) })
				rate := rateOf(func() float64 {
					s.queue.Linear(x, rows, compute.Linear{Y: y, W: ring[i%matrices]})
					return float64(len(data[0]))
				})
				rates, shares = append(rates, rate), append(shares, rate/bound)
			}
			slices.Sort(rates)
			slices.Sort(shares)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rates[len(rates)/2]/1e9, "GB/s")
			b.ReportMetric(shares[len(shares)/2], "of-reading")
		})
	}
}

// ofTiles reports the arithmetic rate of f, which does flop operations, and at level
// amx what part that is of the rate of tiles; see share.
func (b bench) ofTiles(flop float64, f func()) {
	f()
	tiles := strings.Contains(b.device.Info().Detail, "amx")
	var rates, shares []float64
	for b.Loop() {
		rate := rateOf(func() float64 { f(); return flop })
		rates = append(rates, rate)
		if tiles {
			shares = append(shares, rate/rateOf(func() float64 { return peak.Tiles(20_000) }))
		}
	}
	slices.Sort(rates)
	slices.Sort(shares)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rates[len(rates)/2]/1e9, "GFLOP/s")
	if tiles {
		b.ReportMetric(shares[len(shares)/2], "of-peak")
	}
}

// BenchmarkManyRowsBF16 has the sizes of the flow transformer, two windows at once.
func BenchmarkManyRowsBF16(b *testing.B) {
	for _, c := range []struct{ rows, n, k int }{{1380, 16384, 2048}, {1380, 2048, 2048}, {1380, 2048, 8192}, {100, 4096, 4096}} {
		b.Run(fmt.Sprintf("%dx%dx%d", c.rows, c.n, c.k), func(b *testing.B) {
			s := newBench(b, cpu.Options{})
			w, _ := s.bits(c.n, c.k)
			x, y := s.buffer(compute.BF16, c.rows*c.k), s.buffer(compute.BF16, c.rows*c.n)
			s.ofTiles(2*float64(c.rows)*float64(c.n)*float64(c.k), func() { s.queue.Linear(x, c.rows, compute.Linear{Y: y, W: w}) })
		})
	}
}

// BenchmarkConvBF16 has the sizes of a vocoder's stages.
func BenchmarkConvBF16(b *testing.B) {
	for _, c := range []struct{ channels, length, dilation int }{{1536, 690, 1}, {768, 5520, 9}, {384, 11040, 3}, {192, 22080, 1}, {96, 44160, 9}} {
		b.Run(fmt.Sprintf("C=%d/T=%d/k=7/d=%d", c.channels, c.length, c.dilation), func(b *testing.B) {
			s := newBench(b, cpu.Options{})
			n := c.length * c.channels
			x, y := s.buffer(compute.BF16, n), s.buffer(compute.BF16, n)
			conv := compute.Conv{Batch: 1, Length: c.length, W: s.weight(compute.UseConv, compute.BF16, c.channels, c.channels, 7), Dilation: c.dilation, Pad: 3 * c.dilation}
			s.ofTiles(2*7*float64(n)*float64(c.channels), func() { s.queue.Conv1D(y, x, conv) })
		})
	}
	for _, c := range []struct{ in, out, length, stride int }{{1536, 768, 690, 8}, {384, 192, 11040, 4}, {192, 96, 44160, 2}} {
		b.Run(fmt.Sprintf("in=%d/out=%d/T=%d/s=%d", c.in, c.out, c.length, c.stride), func(b *testing.B) {
			s := newBench(b, cpu.Options{})
			n := c.length * c.stride * c.out
			x, y := s.buffer(compute.BF16, c.length*c.in), s.buffer(compute.BF16, n)
			conv := compute.Conv{Batch: 1, Length: c.length, W: s.weight(compute.UseConvTranspose, compute.BF16, c.in, c.out, 2*c.stride), Stride: c.stride, Pad: c.stride / 2}
			s.ofTiles(2*2*float64(n)*float64(c.in), func() { s.queue.ConvTranspose1D(y, x, conv) })
		})
	}
}
