package rng

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTorchConsumption compares the output that follows a draw with the stream's.
func TestTorchConsumption(t *testing.T) {
	raw := NewTorch(9)
	stream := make([]uint32, 2000)
	for i := range stream {
		stream[i] = raw.engine.next()
	}
	examined := 0
	check := func(name string, n, want int, draw func(g *Torch)) {
		g := NewTorch(9)
		draw(g)
		if got := g.engine.next(); got != stream[want] {
			t.Errorf("%d %s do not consume %d outputs", n, name, want)
		}
		examined++
	}
	for n := 1; n <= 700; n++ {
		float, bf16 := n, n
		switch {
		case n < 16: // a pair of values is made of two times two outputs
			float = (n + 1) / 2 * 4
			bf16 = float
		case n%16 != 0:
			float, bf16 = n+16, n/16*16+16
		}
		check("exponentials", n, 2*n, func(g *Torch) { g.Exponentials(n, nil, nil) })
		check("normals", n, float, func(g *Torch) { normals(g, n, false) })
		check("bfloat16 normals", n, bf16, func(g *Torch) { normals(g, n, true) })
	}
	t.Logf("%d draws consume what torch consumes", examined)
}

func TestExponentialsSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := 0
	for range 300 {
		n := r.IntN(3000)
		g := NewTorch(r.Uint64())
		for range r.IntN(5) { // an odd position makes entries straddle two states
			g.engine.next()
		}
		all := make([]float32, n)
		whole := g.Clone()
		whole.Exponentials(n, []Span{{0, n}}, all)

		var spans []Span
		var want []float32
		for range r.IntN(5) {
			lo := r.IntN(n + 1)
			hi := lo + r.IntN(n-lo+1)
			spans = append(spans, Span{lo, hi})
			want = append(want, all[lo:hi]...)
		}
		got := make([]float32, len(want))
		g.Exponentials(n, spans, got)
		if !slices.Equal(got, want) {
			t.Fatalf("n %d, spans %v: not the entries of the whole draw", n, spans)
		}
		if g.engine.next() != whole.engine.next() {
			t.Fatalf("n %d, spans %v: the stream goes on elsewhere", n, spans)
		}
		values += len(got)
	}
	t.Logf("%d values equal", values)
}

func TestExponentialsPanics(t *testing.T) {
	for _, c := range []struct {
		spans []Span
		dst   int
	}{
		{[]Span{{-1, 2}}, 3},
		{[]Span{{3, 2}}, 0},
		{[]Span{{8, 11}}, 3},
		{[]Span{{0, 2}}, 3},
		{nil, 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("spans %v into %d entries: no panic", c.spans, c.dst)
				}
			}()
			NewTorch(0).Exponentials(10, c.spans, make([]float32, c.dst))
		}()
	}
}

func TestTorchDoesNotAllocate(t *testing.T) {
	g := NewTorch(1)
	spans := []Span{{100, 1100}, {50, 51}}
	dst := make([]float32, 1001)
	n := testing.AllocsPerRun(10, func() {
		g.Exponentials(5000, spans, dst)
		g.Normal(dst)
		g.NormalBF16(dst)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTorchClone(t *testing.T) {
	g := NewTorch(5)
	g.Normal(make([]float32, 3)) // leaves a spare value
	c := g.Clone()
	a, b := make([]float32, 40), make([]float32, 40)
	for _, n := range []int{1, 40, 3} {
		g.Normal(a[:n])
		c.Normal(b[:n])
		if !slices.Equal(a, b) {
			t.Fatalf("the clone draws %v, the original %v", b[:n], a[:n])
		}
	}
}
