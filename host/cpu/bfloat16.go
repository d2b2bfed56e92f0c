package cpu

import "math"

// bf16Bits rounds x to bfloat16, nearest even, and returns its 16 bits.
func bf16Bits(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40 // a quiet NaN whatever its payload
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// bf16Float widens 16 bits of a bfloat16.
func bf16Float(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// roundBF16 rounds x to the nearest bfloat16, ties to even.
func roundBF16(x float32) float32 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return math.Float32frombits(b&^0xffff | 0x400000)
	}
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// rounding is the store of an operation: to BF16 when true, as it is when false.
type rounding bool

func (r rounding) of(x float32) float32 {
	if r {
		return roundBF16(x)
	}
	return x
}

// slice rounds every number of x.
func (r rounding) slice(x []float32) {
	if !r {
		return
	}
	for i, v := range x {
		x[i] = roundBF16(v)
	}
}

// narrow rounds src to dst[:len(src)].
func narrow(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = bf16Bits(v)
	}
}

// widen writes the float32 values of src to dst[:len(src)].
func widen(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, b := range src {
		dst[i] = bf16Float(b)
	}
}
