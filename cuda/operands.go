//go:build cgo && !nocuda

package cuda

import (
	"fmt"
	"math"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// operands checks the arguments of one operation and unwraps them. Its methods panic
// with the names of operation and argument: a wrong buffer is a bug of the caller.
type operands struct {
	op    string
	dtype compute.DType // of the first float buffer; the others must share it
}

func (o *operands) fail(format string, args ...any) {
	panic("cuda: " + o.op + ": " + fmt.Sprintf(format, args...))
}

// size checks a count, which the kernels take as 32 bits.
func (o *operands) size(name string, n int) {
	if n < 0 || n > math.MaxInt32 {
		o.fail("%s is %d", name, n)
	}
}

func (o *operands) buffer(name string, b compute.Buffer) *buffer {
	own, ok := b.(*buffer)
	if !ok {
		o.fail("%s is %T, want a buffer of this device", name, b)
	}
	return own
}

// floats is the first n numbers of b, which must have the type of the call's other float
// buffers.
func (o *operands) floats(name string, b compute.Buffer, n int) *buffer {
	own := o.buffer(name, b)
	if own.dtype == compute.I32 {
		o.fail("%s is I32, want F32 or BF16", name)
	}
	if o.dtype == 0 {
		o.dtype = own.dtype
	}
	if own.dtype != o.dtype {
		o.fail("%s is %v, the others are %v", name, own.dtype, o.dtype)
	}
	if own.n < n {
		o.fail("%s has %d numbers, want %d", name, own.n, n)
	}
	return own
}

func (o *operands) ints(name string, b compute.Buffer, n int) *buffer {
	own := o.buffer(name, b)
	if own.dtype != compute.I32 {
		o.fail("%s is %v, want I32", name, own.dtype)
	}
	if own.n < n {
		o.fail("%s has %d numbers, want %d", name, own.n, n)
	}
	return own
}

func (o *operands) weight(name string, w compute.Weight) *weight {
	own, ok := w.(*weight)
	if !ok {
		o.fail("%s is %T, want a weight of this device", name, w)
	}
	return own
}

// matrix is w as a row-major weight [rows, width].
func (o *operands) matrix(name string, w compute.Weight) *weight {
	own := o.weight(name, w)
	if own.use == compute.UseConv || own.use == compute.UseConvTranspose {
		o.fail("%s was loaded for a convolution", name)
	}
	if len(own.shape) != 2 {
		o.fail("%s has shape %v, want two dimensions", name, own.shape)
	}
	return own
}

// vector is the address of n float32 values, 0 for a nil w.
func (o *operands) vector(name string, w compute.Weight, n int) cu.DevicePtr {
	if w == nil {
		return 0
	}
	own := o.weight(name, w)
	if own.use != compute.UseVector {
		o.fail("%s was not loaded with UseVector", name)
	}
	if own.numbers() != n {
		o.fail("%s has shape %v, want %d numbers", name, own.shape, n)
	}
	return own.at
}

// apart checks that n numbers of an output share no memory with m of an input.
func (o *operands) apart(yName string, y *buffer, n int, xName string, x *buffer, m int) {
	if overlap(y, n, x, m) {
		o.fail("%s overlaps %s", yName, xName)
	}
}

// inPlace checks that n numbers of an output are those of an input or apart from them.
func (o *operands) inPlace(yName string, y *buffer, xName string, x *buffer, n int) {
	if y.at != x.at && overlap(y, n, x, n) {
		o.fail("%s overlaps %s without being the same", yName, xName)
	}
}

func overlap(a *buffer, n int, b *buffer, m int) bool {
	return n > 0 && m > 0 && a.at < b.at+cu.DevicePtr(b.bytes(m)) && b.at < a.at+cu.DevicePtr(a.bytes(n))
}

func (o *operands) cache(b compute.KVCache, layer int) *kvCache {
	own, ok := b.(*kvCache)
	if !ok {
		o.fail("cache is %T, want a KV cache of this device", b)
	}
	if own.at == 0 {
		o.fail("the KV cache is closed")
	}
	if layer < 0 || layer >= own.config.Layers {
		o.fail("layer is %d, the cache has %d", layer, own.config.Layers)
	}
	return own
}
