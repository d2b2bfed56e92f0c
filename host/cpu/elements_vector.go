//go:build !noasm && (amd64 || arm64)

package cpu

// snakeSteps leaves to the portable code what a loop stops at: arguments of the sine
// that are huge or no numbers. Those beside them still go through the loop, so that no
// number's bits depend on others.
func snakeSteps(loop func(y, x, alpha, inverse []float32) (done int), r rounding) func(y, x, alpha, inverse []float32) {
	return func(y, x, alpha, inverse []float32) {
		for {
			n := loop(y, x, alpha, inverse)
			if n == len(y) {
				return
			}
			y, x, alpha, inverse = y[n:], x[n:], alpha[n:], inverse[n:]
			var block, within [16]float32
			n = copy(block[:], x)
			for i, v := range block[:n] {
				if a := r.of(float32(alpha[i] * v)); -1<<27 < a && a < 1<<27 {
					within[i] = v
				}
			}
			done := loop(y[:n], within[:n], alpha, inverse)
			for i, v := range block[:n] {
				if within[i] != v || i >= done { // the loop stops at an infinite alpha
					r.snake(y[i:i+1], block[i:i+1], alpha[i:i+1], inverse[i:i+1])
				}
			}
			y, x, alpha, inverse = y[n:], x[n:], alpha[n:], inverse[n:]
		}
	}
}

// narrowMost leaves to the portable code what a loop does.
func narrowMost(loop func(dst []uint16, src []float32) (done int)) func(dst []uint16, src []float32) {
	return func(dst []uint16, src []float32) {
		dst = dst[:len(src)]
		n := loop(dst, src)
		narrow(dst[n:], src[n:])
	}
}

// widenBlocks leaves what is no whole block to the portable code.
func widenBlocks(blocks func(dst *float32, src *uint16, blocks int)) func(dst []float32, src []uint16) {
	return func(dst []float32, src []uint16) {
		dst = dst[:len(src)]
		n := len(src) &^ 31
		if n > 0 {
			blocks(&dst[0], &src[0], n/32)
		}
		widen(dst[n:], src[n:])
	}
}
