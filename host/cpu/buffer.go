package cpu

import (
	"fmt"

	"skald/host/compute"
)

// buffer holds floats or ints, never both; see the package comment for why a BF16
// buffer holds float32.
type buffer struct {
	dtype  compute.DType
	floats []float32
	ints   []int32
	device *device // nil in a slice
}

func newBuffer(d *device, t compute.DType, n int) *buffer {
	if t == compute.I32 {
		return &buffer{dtype: t, ints: make([]int32, n), device: d}
	}
	return &buffer{dtype: t, floats: make([]float32, n), device: d}
}

func (b *buffer) Free() {
	if b.device == nil {
		panic("cpu: Free of a slice, or a second Free")
	}
	b.device.used.Add(-4 * int64(b.Len()))
	b.device, b.floats, b.ints = nil, nil, nil
}

func (b *buffer) DType() compute.DType { return b.dtype }

func (b *buffer) Len() int { return len(b.floats) + len(b.ints) }

func (b *buffer) Slice(lo, hi int) compute.Buffer {
	if lo < 0 || hi < lo || hi > b.Len() {
		panic(fmt.Sprintf("cpu: Slice(%d, %d) of a %v buffer of %d", lo, hi, b.dtype, b.Len()))
	}
	if b.dtype == compute.I32 {
		return &buffer{dtype: b.dtype, ints: b.ints[lo:hi:hi]}
	}
	return &buffer{dtype: b.dtype, floats: b.floats[lo:hi:hi]}
}

func (b *buffer) round() rounding { return b.dtype == compute.BF16 }
