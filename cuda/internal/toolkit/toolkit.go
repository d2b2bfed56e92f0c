//go:build cgo && !nocuda

// Package toolkit fails to compile where CUDA's headers are not found, with a sentence
// that says what to do. The compiler's own error, about package cu, does not.
package toolkit

/*
#if !__has_include(<cuda.h>)
#error "CUDA's headers were not found. Build the libraries and load what Go must know of them (docs/cuda.md): cmake --preset cuda && cmake --build --preset cuda && . build/cuda/env.sh. Or build without CUDA: -tags nocuda"
#endif
*/
import "C"
