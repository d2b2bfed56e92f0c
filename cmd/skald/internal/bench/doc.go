// Package bench measures the stages of the model at their real widths, with made-up
// weights and few layers, and prints one JSON row for each.
//
// A row's identity is (stage, work, dtype, threads): rows of two programs with the same
// identity did the same work and may be divided by each other.
package bench
