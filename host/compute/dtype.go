package compute

import "fmt"

// DType is the type of the numbers in a tensor or a buffer.
type DType uint8

// Types a stored tensor may have. Buffers are F32, BF16 or I32 only. The kernels know them
// by the same numbers, see kernels/skald_kernels.h.
const (
	F32 DType = iota + 1
	BF16
	F16
	F64
	F8E4M3
	F8E5M2
	I32
)

// Size returns the bytes one number takes.
func (d DType) Size() int {
	switch d {
	case F64:
		return 8
	case F32, I32:
		return 4
	case BF16, F16:
		return 2
	case F8E4M3, F8E5M2:
		return 1
	}
	panic(fmt.Sprintf("compute: no size for %v", d))
}

func (d DType) String() string {
	names := [...]string{"invalid", "F32", "BF16", "F16", "F64", "F8_E4M3", "F8_E5M2", "I32"}
	if int(d) < len(names) {
		return names[d]
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}
