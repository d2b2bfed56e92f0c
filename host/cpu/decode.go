package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"skald/host/compute"
)

// decode reads len(dst) little-endian numbers of type d. Only F64 loses digits.
func decode(dst []float32, src []byte, d compute.DType) {
	le := binary.LittleEndian
	switch d {
	case compute.F32:
		if littleEndian() {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst)), src)
			return
		}
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		}
	case compute.BF16:
		for i := range dst {
			dst[i] = bf16Float(le.Uint16(src[2*i:]))
		}
	case compute.F16:
		for i := range dst {
			b := le.Uint16(src[2*i:])
			dst[i] = smallFloat(uint32(b), 5, 10, true)
		}
	case compute.F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(src[8*i:])))
		}
	case compute.F8E4M3:
		for i := range dst {
			dst[i] = smallFloat(uint32(src[i]), 4, 3, false)
		}
	case compute.F8E5M2:
		for i := range dst {
			dst[i] = smallFloat(uint32(src[i]), 5, 2, true)
		}
	}
}

// smallFloat widens a float of 1 sign bit, e exponent bits and m mantissa bits. With
// inf the largest exponent means infinity or NaN, as in IEEE 754; without, as in
// OCP's E4M3, only all ones means NaN and there is no infinity.
func smallFloat(b uint32, e, m uint, inf bool) float32 {
	sign := b >> (e + m) << 31
	exponent := b >> m & (1<<e - 1)
	mantissa := b & (1<<m - 1)
	bias := uint32(1)<<(e-1) - 1
	switch {
	case exponent == 0: // zero and subnormal: mantissa * 2^(1-bias-m)
		v := float32(mantissa) * math.Float32frombits((127+1-bias-uint32(m))<<23)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case exponent == 1<<e-1 && inf:
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<(23-m))
	case exponent == 1<<e-1 && mantissa == 1<<m-1:
		return math.Float32frombits(sign | 0x7fc00000)
	}
	return math.Float32frombits(sign | (exponent+127-bias)<<23 | mantissa<<(23-m))
}
