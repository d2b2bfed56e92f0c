// Package cpu is the device that every machine has: compute.Device in plain Go,
// without cgo, threaded over the cores the process may use.
//
// # Numbers
//
// Buffers of both float types hold float32. A BF16 buffer rounds, to nearest even,
// at every store, so its numbers are exactly bfloat16 numbers; keeping them widened
// costs memory of activations, which are small beside the weights, and saves every
// kernel a second form and a conversion at each load. What is large is kept as it
// is stored: weights are read from the mapping in their own type, and a BF16 KV
// cache holds bfloat16.
//
// # Functions
//
// In portable code exp, sin, tanh and silu are within 0.501 ulp. In vectors the sine
// still is, of every finite number; silu is within 2.7 ulp, tanh within 2.55, and the
// weights of a softmax within 0.9, those below the normal numbers being 0.
//
// # Levels
//
// The inner loops exist once in portable Go, the level "go", and in assembly for each
// set of instructions worth it; level.go lists them and chooses when the device is
// made. The assembly is written by the program in internal/asm. A queue, its tasks and
// their chunks are the same at every level; where a level has kernels that want
// another way through an operation, that way has a task of its own beside the
// portable one (linear.go and linear_panels.go, conv.go and conv_panels.go,
// attention_full.go and attention_panels.go).
//
// # Sums
//
// The portable code sums a product of a row with a column of a weight in blocks of
// kBlock terms: each block in order from zero, then the blocks in order. Products and
// sums are rounded apart everywhere, also where the hardware has a fused
// multiply-add, which gives the same bits on every architecture.
//
// Vector kernels keep one running sum for each result and add the terms in order, each
// with one fused multiply-add; see panels.go.
//
// Instructions for bfloat16 add two terms at a time, or 32 in two halves, in order, and
// take numbers below the normal ones for 0. Where a level has them they do the products
// with bfloat16 weights: those of bfloat16 numbers, and at level amx those of float32
// numbers in three parts; see dotLinear and amxLinear.
//
// Within a level every kernel of an operation follows one order, for one row or for
// many, so a row's result depends neither on its company nor on the number of threads.
// Between levels results differ by the rounding of sums.
package cpu
