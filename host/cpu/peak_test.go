//go:build linux

package cpu_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/cpu/internal/peak"
)

// share reports the arithmetic rate of f and what part it is of the rate of nothing
// but multiply-adds. Both are rates for one core, by the time that the process was
// given: what else runs on the machine counts less then. Each run of f is compared with
// a loop right behind it; the middle one of these counts.
func (b bench) share(flop float64, bytes int, f func()) {
	f()
	var rates, shares []float64
	for b.Loop() {
		rate := rateOf(func() float64 { f(); return flop })
		rates = append(rates, rate)
		shares = append(shares, rate/rateOf(func() float64 { return peak.FMA(bytes, 50_000) }))
	}
	slices.Sort(rates)
	slices.Sort(shares)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rates[len(rates)/2]/1e9, "GFLOP/s")
	b.ReportMetric(shares[len(shares)/2], "of-peak")
}

// rateOf is what f returns for a second that this process computes.
func rateOf(f func() float64) float64 {
	var before, after unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &before)
	n := f()
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &after)
	return n / float64(after.Nano()-before.Nano()) * 1e9
}

// BenchmarkLinearPeak has the sizes of the flow transformer and of a few rows in the language
// model; the weight is packed when it is loaded, or in the call.
func BenchmarkLinearPeak(b *testing.B) {
	for _, c := range []struct{ rows, k, n int }{
		{690, 2048, 2048}, {690, 2064, 2048}, {690, 2048, 16384}, {690, 8192, 2048}, {690, 256, 832}, {690, 416, 256}, {64, 2048, 2048}, {8, 2048, 2048}, {2, 2048, 2048}, {2, 256, 832},
	} {
		for _, d := range []compute.DType{compute.F32, compute.BF16} {
			for _, form := range []struct {
				name string
				pack int64
			}{{"packed", 1 << 40}, {"call", -1}} {
				b.Run(fmt.Sprintf("%dx%dx%d/%v/%s", c.rows, c.k, c.n, d, form.name), func(b *testing.B) {
					s := newBench(b, cpu.Options{Threads: runtime.GOMAXPROCS(0), PackBytes: form.pack})
					x, y := s.buffer(compute.F32, c.rows*c.k), s.buffer(compute.F32, c.rows*c.n)
					group := []compute.Linear{{Y: y, W: s.weight(compute.UseLinear, d, c.n, c.k)}}
					s.share(2*float64(c.rows)*float64(c.k)*float64(c.n), vectorBytes(), func() { s.queue.Linear(x, c.rows, group...) })
				})
			}
		}
	}
}

func vectorBytes() int {
	if os.Getenv("SKALD_CPU") == "avx2" {
		return 32
	}
	return 64
}

// BenchmarkConvPeak has the sizes of a vocoder's stages, real and small.
func BenchmarkConvPeak(b *testing.B) {
	for _, c := range []struct{ channels, length, taps, dilation int }{
		{1536, 690, 7, 1}, {768, 1380, 7, 3}, {384, 2760, 7, 1}, {384, 2760, 7, 9}, {192, 5520, 7, 1}, {96, 11040, 7, 9}, {96, 11040, 7, 1},
		{32, 11040, 7, 1}, {16, 88320, 7, 3}, {8, 176640, 7, 1}, {4, 353280, 7, 1},
	} {
		b.Run(fmt.Sprintf("C=%d/T=%d/k=%d/d=%d", c.channels, c.length, c.taps, c.dilation), func(b *testing.B) {
			s := newBench(b, cpu.Options{Threads: runtime.GOMAXPROCS(0)})
			x, y := s.buffer(compute.F32, c.length*c.channels), s.buffer(compute.F32, c.length*c.channels)
			conv := compute.Conv{Batch: 1, Length: c.length, W: s.weight(compute.UseConv, compute.F32, c.channels, c.channels, c.taps), Bias: s.weight(compute.UseVector, compute.F32, c.channels), Dilation: c.dilation, Pad: c.taps / 2 * c.dilation}
			s.share(2*float64(c.length)*float64(c.channels*c.channels*c.taps), vectorBytes(), func() { s.queue.Conv1D(y, x, conv) })
		})
	}
	for _, c := range []struct{ in, out, length, stride int }{{1536, 768, 345, 8}, {384, 192, 1380, 4}, {192, 96, 5520, 2}, {64, 32, 690, 16}, {16, 8, 44160, 2}, {8, 4, 88320, 2}} {
		b.Run(fmt.Sprintf("in=%d/out=%d/T=%d/s=%d", c.in, c.out, c.length, c.stride), func(b *testing.B) {
			s := newBench(b, cpu.Options{Threads: runtime.GOMAXPROCS(0)})
			n := c.length * c.stride * c.out
			x, y := s.buffer(compute.F32, c.length*c.in), s.buffer(compute.F32, n)
			conv := compute.Conv{Batch: 1, Length: c.length, W: s.weight(compute.UseConvTranspose, compute.F32, c.in, c.out, 2*c.stride), Stride: c.stride, Pad: c.stride / 2}
			s.share(2*2*float64(n*c.in), vectorBytes(), func() { s.queue.ConvTranspose1D(y, x, conv) })
		})
	}
}
