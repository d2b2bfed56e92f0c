// Package compute is the contract between the model and the hardware: what a
// device must be able to do, and nothing about how.
//
// The model in host/music3 is written once against Device and Queue. A device
// offers a small set of operations, fused where hardware wants them fused, each
// with ONE meaning that every device shares; the doc comments of Queue state that
// meaning with shapes and rounding, and host/compute/computetest checks it.
//
// # Rounding
//
// Every operation reads its inputs, computes in float32 (sums too) and rounds
// once where its comment says "store" or r(...): to bfloat16, nearest even, when
// the destination buffer is BF16, and not at all when it is F32. Buffers of one
// call share one type unless the comment says otherwise.
//
// # Determinism
//
// No result for a row depends on which other rows share the call, nor on the
// number of threads: the order of every sum is a function of the operation's own
// sizes. The same call twice gives the same bytes.
//
// # Layout
//
// Everything is row-major. Sequences are channels-last: [time, channels]. Shapes
// are given in brackets, slowest index first.
package compute
