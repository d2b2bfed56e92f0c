package rng_test

import (
	"fmt"

	"skald/host/rng"
)

// A sampler draws from the candidates 3, 8 and 9 of the semantic code of iteration
// 0, alone and in any order.
func ExampleExponential() {
	weights := map[uint32]float32{3: 0.2, 8: 0.5, 9: 0.3}
	best, drawn := float32(-1), uint32(0)
	for candidate, p := range weights {
		if r := p / rng.Exponential(42, 0, 0, candidate); r > best {
			best, drawn = r, candidate
		}
	}
	fmt.Println(drawn)
	// Output: 8
}

func ExampleNormals() {
	noise := make([]float32, 5)
	rng.Normals(42, 0, noise)
	fmt.Printf("%.4f\n", noise)
	// Output:
	// [0.5734 1.3805 1.1318 0.5622 0.7053]
}

// A generator of torch with a seed: one draw over a vocabulary of 1000, of which
// only the ids 500 to 502 and the end id 10 are of interest, and then the noise of a
// window.
func ExampleTorch() {
	g := rng.NewTorch(42)
	q := make([]float32, 4)
	g.Exponentials(1000, []rng.Span{{Lo: 500, Hi: 503}, {Lo: 10, Hi: 11}}, q)
	noise := make([]float32, 16)
	g.Normal(noise)
	fmt.Printf("%.4f %.4f\n", q, noise[:2])
	// Output:
	// [1.8030 2.5951 2.4367 0.1709] [-0.9928 -0.2558]
}
