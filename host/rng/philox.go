package rng

import "math/bits"

// The counter of a draw. Word 3 names the kind, so that no two kinds of draws ever
// meet; the key is the seed, low word first.
//
//	kind    word 0          word 1     word 2   word 3
//	token   candidate       iteration  draw     1
//	noise   element / 4     window     0        2
const (
	kindToken = 1
	kindNoise = 2
)

// Exponential is the variate of the exponential distribution (mean 1) that belongs
// to one candidate of one draw of a song: draw 0 of an iteration is its semantic
// code, draw j its residual code j. A sampler takes the candidate with the largest
// p/q, p its weight and q this variate.
//
// With w the first output of Philox for the counter of kind token,
//
//	u = ((w >> 9) + 0.5) * 2^-23    exact, in [2^-24, 1 - 2^-24]
//	q = -log(u)                     in float32, finite and above zero
//
// One bit more would not fit: with 24 bits the half rounds away, and u may be 1.
func Exponential(seed uint64, iteration, draw, candidate uint32) float32 {
	w := philox4x32(seed, [4]uint32{candidate, iteration, draw, kindToken})
	return -log32(openUniform(w[0]))
}

// Normals fills dst with the first len(dst) elements of a window's noise, normal
// with mean 0 and variance 1. Element e of a window, counted through its flattened
// [channels, length] array, depends on seed, window and e alone. It panics when dst
// holds more than 2^34 values.
//
// The four outputs w of Philox for the counter of kind noise with word 0 = e/4 make
// elements 4*(e/4) to 4*(e/4)+3 by Box-Muller: w0 and w1 the first two, w2 and w3
// the other two. With u1 = ((w0 >> 9) + 0.5) * 2^-23 and u2 = (w1 >> 8) * 2^-24,
//
//	radius = sqrt(-2 * log(u1)), theta = float32(2 pi) * u2
//	first = radius * cos(theta) + 0, second = radius * sin(theta) + 0
//
// in float32, each operation rounded.
func Normals(seed uint64, window uint32, dst []float32) {
	if uint64(len(dst)) > 1<<34 {
		panic("rng: more than 2^34 normals of one window")
	}
	for block := uint32(0); len(dst) > 0; block++ {
		w := philox4x32(seed, [4]uint32{block, window, 0, kindNoise})
		var four [4]float32
		four[0], four[1] = normalPair(openUniform(w[0]), halfOpenUniform(w[1]))
		four[2], four[3] = normalPair(openUniform(w[2]), halfOpenUniform(w[3]))
		dst = dst[copy(dst, four[:]):]
	}
}

// openUniform is in (0, 1), halfOpenUniform in [0, 1).
func openUniform(w uint32) float32     { return (float32(w>>9) + 0.5) * (1.0 / (1 << 23)) }
func halfOpenUniform(w uint32) float32 { return float32(w>>8) * (1.0 / (1 << 24)) }

// philox4x32 is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (2011).
func philox4x32(key uint64, c [4]uint32) [4]uint32 {
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, c[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += 0x9e3779b9
		k1 += 0xbb67ae85
	}
	return c
}
