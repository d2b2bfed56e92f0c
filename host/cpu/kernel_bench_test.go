package cpu

import "testing"

func BenchmarkDot(b *testing.B) {
	const n = 256
	x := make([]float32, 8*n)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	r := func(i int) []float32 { return x[i*n : (i+1)*n] }
	w := make([]uint16, 4*n)
	b.Run("1x4", func(b *testing.B) {
		var s [4]float32
		for b.Loop() {
			dot1x4(&s, r(0), r(1), r(2), r(3), r(4))
		}
		b.ReportMetric(2*4*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
	b.Run("1x4bf16", func(b *testing.B) {
		var s [4]float32
		for b.Loop() {
			dot1x4BF16(&s, r(0), w[:n], w[n:], w[2*n:], w[3*n:])
		}
		b.ReportMetric(2*4*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
	b.Run("axpy4", func(b *testing.B) {
		a := [4]float32{0.5, 0.5, -0.5, -0.5}
		for b.Loop() {
			axpy4(r(0), &a, r(2), r(3), r(4), r(5))
		}
		b.ReportMetric(2*4*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}
