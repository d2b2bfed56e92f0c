package rng

import "testing"

// BenchmarkExponentials draws a semantic code of the published model: 200,000
// entries, of which 16,385 are wanted.
func BenchmarkExponentials(b *testing.B) {
	g := NewTorch(1)
	spans := []Span{{151675, 168059}, {151670, 151671}}
	dst := make([]float32, 16385)
	b.ReportAllocs()
	for b.Loop() {
		g.Exponentials(200000, spans, dst)
	}
}

// BenchmarkNormal draws the noise of a whole window of the published model.
func BenchmarkNormal(b *testing.B) {
	g := NewTorch(1)
	dst := make([]float32, 128*689)
	for b.Loop() {
		g.Normal(dst)
	}
}

func BenchmarkNormals(b *testing.B) {
	dst := make([]float32, 128*689)
	for b.Loop() {
		Normals(1, 0, dst)
	}
}

func BenchmarkExponential(b *testing.B) {
	for i := uint32(0); b.Loop(); i++ {
		Exponential(1, 0, 0, i)
	}
}
