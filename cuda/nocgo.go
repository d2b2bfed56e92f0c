//go:build !cgo && !nocuda

package cuda

// Without cgo there is no CUDA. The compiler stops here, and its message says what to do.
var _ = cuda_needs_cgo__Build_with_CGO_ENABLED_1_or_without_CUDA_by_the_tag_nocuda
