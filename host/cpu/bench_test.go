package cpu_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"skald/host/compute"
	"skald/host/cpu"
)

type bench struct {
	*testing.B
	device compute.Device
	queue  compute.Queue
}

func newBench(b *testing.B, o cpu.Options) bench {
	d, err := cpu.New(o)
	if err != nil {
		b.Fatal(err)
	}
	q, err := d.NewQueue()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	return bench{b, d, q}
}

func (b bench) normal(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rand.NormFloat64())
	}
	return v
}

func (b bench) buffer(d compute.DType, n int) compute.Buffer {
	x, err := b.device.NewBuffer(d, n)
	if err != nil {
		b.Fatal(err)
	}
	b.queue.Upload(x, b.normal(n))
	return x
}

func (b bench) weight(use compute.Use, d compute.DType, shape ...int) compute.Weight {
	n := 1
	for _, s := range shape {
		n *= s
	}
	var data []byte
	for _, v := range b.normal(n) {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	w, err := b.device.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: shape, Data: data}, use, d)
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// gflops runs f and reports its arithmetic rate.
func (b bench) gflops(flop float64, f func()) {
	f()
	for b.Loop() {
		f()
	}
	b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkLinear(b *testing.B) {
	for _, c := range []struct{ rows, k, n int }{{690, 256, 832}, {64, 2048, 512}, {2, 4096, 4096}, {1, 4096, 4096}, {8, 256, 256}} {
		for _, d := range []compute.DType{compute.F32, compute.BF16} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%dx%dx%d/%v/threads=%d", c.rows, c.k, c.n, d, threads), func(b *testing.B) {
					s := newBench(b, cpu.Options{Threads: threads})
					x, y := s.buffer(d, c.rows*c.k), s.buffer(d, c.rows*c.n)
					group := []compute.Linear{{Y: y, W: s.weight(compute.UseLinear, d, c.n, c.k)}}
					s.gflops(2*float64(c.rows)*float64(c.k)*float64(c.n), func() { s.queue.Linear(x, c.rows, group...) })
				})
			}
		}
	}
}

func BenchmarkConv1D(b *testing.B) {
	for _, c := range []struct{ channels, length, taps int }{{64, 10000, 7}, {24, 40000, 7}, {64, 10000, 1}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("C=%d/T=%d/k=%d/threads=%d", c.channels, c.length, c.taps, threads), func(b *testing.B) {
				s := newBench(b, cpu.Options{Threads: threads})
				x, y := s.buffer(compute.F32, c.length*c.channels), s.buffer(compute.F32, c.length*c.channels)
				conv := compute.Conv{Batch: 1, Length: c.length, W: s.weight(compute.UseConv, compute.F32, c.channels, c.channels, c.taps), Dilation: 1, Pad: c.taps / 2}
				s.gflops(2*float64(c.length)*float64(c.channels*c.channels*c.taps), func() { s.queue.Conv1D(y, x, conv) })
			})
		}
	}
}

func BenchmarkFullAttention(b *testing.B) {
	const batch, length, heads, headDim = 2, 690, 4, 64
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			s := newBench(b, cpu.Options{Threads: threads})
			n := batch * length * heads * headDim
			o, q, k, v := s.buffer(compute.F32, n), s.buffer(compute.F32, n), s.buffer(compute.F32, n), s.buffer(compute.F32, n)
			s.gflops(4*batch*length*length*heads*headDim, func() { s.queue.FullAttention(o, q, k, v, batch, length, heads, headDim, 0.125) })
		})
	}
}

// BenchmarkElements reports nanoseconds for one number on one core.
func BenchmarkElements(b *testing.B) {
	const n = 1 << 16
	s := newBench(b, cpu.Options{Threads: 1})
	x, y, z := s.buffer(compute.F32, n), s.buffer(compute.F32, n), s.buffer(compute.F32, n)
	alpha := s.weight(compute.UseVector, compute.F32, 64)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"Snake", func() { s.queue.Snake(y, x, alpha, n/64) }},
		{"SwiGLU", func() { s.queue.SwiGLU(y, x, z) }},
		{"Tanh", func() { s.queue.Tanh(y, x) }},
		{"RMSNorm", func() { s.queue.RMSNorm(y, x, alpha, n/64, 1e-6) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/number")
		})
	}
}
