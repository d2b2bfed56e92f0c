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
// # Sums
//
// A product of a row with a column of a weight is summed in blocks of kBlock terms:
// each block in order from zero, then the blocks in order. Every kernel follows that
// one order, for one row or for many, so a row's result does not depend on its
// company. Products and sums are rounded apart everywhere, also where the hardware
// has a fused multiply-add: the portable kernels give the same bits on every
// architecture.
package cpu
