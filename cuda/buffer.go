//go:build cgo && !nocuda

package cuda

import (
	"fmt"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// buffer is n numbers of device memory.
type buffer struct {
	dtype compute.DType
	at    cu.DevicePtr
	n     int
	owner *device // of what NewBuffer returned; nil for slices
}

func (b *buffer) DType() compute.DType { return b.dtype }
func (b *buffer) Len() int             { return b.n }

func (b *buffer) Slice(lo, hi int) compute.Buffer {
	if lo < 0 || hi < lo || hi > b.n {
		panic(fmt.Sprintf("cuda: Slice(%d, %d) of a %v buffer of %d", lo, hi, b.dtype, b.n))
	}
	return &buffer{dtype: b.dtype, at: b.at + cu.DevicePtr(lo*b.dtype.Size()), n: hi - lo}
}

func (b *buffer) Free() {
	if b.owner == nil {
		panic("cuda: Free of a slice, or a second Free")
	}
	b.owner.free(b.at) // an error means that the device is lost, which its queues tell
	b.owner, b.at, b.n = nil, 0, 0
}

// bytes is the size of the first n numbers.
func (b *buffer) bytes(n int) int64 { return int64(n) * int64(b.dtype.Size()) }
