package cpu

import (
	"fmt"
	"unsafe"

	"skald/host/compute"
)

// operands checks the arguments of one operation and unwraps them. Its methods panic
// with the names of operation and argument: a wrong buffer is a bug of the caller.
type operands struct {
	op    string
	dtype compute.DType // of the first float buffer; the others must share it
}

func (o *operands) fail(format string, args ...any) {
	panic("cpu: " + o.op + ": " + fmt.Sprintf(format, args...))
}

// size checks that a count is not negative.
func (o *operands) size(name string, n int) {
	if n < 0 {
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

// floats returns the first n numbers of b, which must have the type of the call's
// other float buffers.
func (o *operands) floats(name string, b compute.Buffer, n int) []float32 {
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
	if len(own.floats) < n {
		o.fail("%s has %d numbers, want %d", name, len(own.floats), n)
	}
	return own.floats[:n]
}

// all is floats for the whole of b.
func (o *operands) all(name string, b compute.Buffer) []float32 {
	return o.floats(name, b, o.buffer(name, b).Len())
}

func (o *operands) ints(name string, b compute.Buffer, n int) []int32 {
	own := o.buffer(name, b)
	if own.dtype != compute.I32 {
		o.fail("%s is %v, want I32", name, own.dtype)
	}
	if len(own.ints) < n {
		o.fail("%s has %d numbers, want %d", name, len(own.ints), n)
	}
	return own.ints[:n]
}

func (o *operands) weight(name string, w compute.Weight) *weight {
	own, ok := w.(*weight)
	if !ok {
		o.fail("%s is %T, want a weight of this device", name, w)
	}
	return own
}

// matrix returns w as a row-major weight [rows, width].
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

// vector returns the n float32 values of w. A nil w gives nil.
func (o *operands) vector(name string, w compute.Weight, n int) []float32 {
	if w == nil {
		return nil
	}
	own := o.weight(name, w)
	if own.use != compute.UseVector {
		o.fail("%s was not loaded with UseVector", name)
	}
	if len(own.floats) != n {
		o.fail("%s has shape %v, want %d numbers", name, own.shape, n)
	}
	return own.floats
}

// apart checks that an output does not share memory with an input.
func (o *operands) apart(yName string, y []float32, xName string, x []float32) {
	if overlap(y, x) {
		o.fail("%s overlaps %s", yName, xName)
	}
}

// inPlace checks that an output is an input or shares nothing with it.
func (o *operands) inPlace(yName string, y []float32, xName string, x []float32) {
	if len(y) > 0 && len(x) > 0 && &y[0] != &x[0] && overlap(y, x) {
		o.fail("%s overlaps %s without being the same", yName, xName)
	}
}

func overlap(a, b []float32) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	a0, b0 := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return a0 < b0+4*uintptr(len(b)) && b0 < a0+4*uintptr(len(a))
}
