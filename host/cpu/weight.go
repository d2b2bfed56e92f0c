package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"skald/host/compute"
)

// weight is a tensor in the forms its operations read. A convolution has either packed
// or panels, by level; anything else has either floats or bits, and a matrix may have
// panels besides.
type weight struct {
	shape   []int
	dtype   compute.DType
	use     compute.Use
	private int64

	floats []float32 // row-major
	bits   []uint16  // row-major bfloat16
	packed []float32 // of a convolution: [taps][out][in]
	panels []float32 // see panels.go and packTapPanels
	pairs  []uint16  // of a matrix of bits, see dotLinear, or of a convolution, see packTapPairs
}

func (w *weight) Shape() []int         { return w.shape }
func (w *weight) DType() compute.DType { return w.dtype }
func (w *weight) PrivateBytes() int64  { return w.private }

// row returns row i of a row-major weight, widened into buf unless it is stored as
// float32.
func (w *weight) row(i int, buf []float32, k *kernels) []float32 {
	n := w.shape[len(w.shape)-1]
	if w.floats != nil {
		return w.floats[i*n : (i+1)*n]
	}
	k.widen(buf[:n], w.bits[i*n:(i+1)*n])
	return buf[:n]
}

// loadWeight makes the form that use asks for. Matrices and tables stored as F32 or
// BF16 stay in the caller's memory when the type fits and the address is aligned;
// vectors and convolutions, small beside them, are always float32; convolutions take the
// form that the kernels want.
func loadWeight(t compute.Tensor, use compute.Use, as compute.DType, k *kernels) (*weight, error) {
	n, err := checkTensor(t, use, as)
	if err != nil {
		return nil, fmt.Errorf("cpu: load %s: %w", t.Name, err)
	}
	w := &weight{shape: append([]int(nil), t.Shape...), dtype: as, use: use}
	switch form := formOf(t.DType, use, as); form {
	case kernelForm:
		w.packKernel(values(t, n, as), k)
	case floatsInPlace:
		var copied bool
		w.floats, copied = inPlace[float32](t.Data, n)
		if copied {
			w.private = int64(4 * n)
		}
	case bitsInPlace:
		var copied bool
		w.bits, copied = inPlace[uint16](t.Data, n)
		if copied {
			w.private = int64(2 * n)
		}
	case ownBits:
		w.bits = roundedBits(t, n, k)
		w.private = int64(2 * n)
	case ownFloats:
		w.floats = values(t, n, as)
		w.private = int64(4 * n)
	}
	return w, nil
}

// form is how a weight is kept, but for the panels and pairs of matrices.
type form uint8

const (
	floatsInPlace form = iota + 1
	bitsInPlace
	ownFloats
	ownBits
	kernelForm // of convolutions
)

func formOf(stored compute.DType, use compute.Use, as compute.DType) form {
	switch {
	case use == compute.UseConv || use == compute.UseConvTranspose:
		return kernelForm
	case stored == compute.F32 && as == compute.F32:
		return floatsInPlace
	case use == compute.UseVector:
		return ownFloats
	case stored == compute.BF16:
		return bitsInPlace
	case as == compute.BF16:
		return ownBits
	}
	return ownFloats
}

// packKernel keeps the kernel of a convolution.
func (w *weight) packKernel(v []float32, k *kernels) {
	out, in, taps := w.shape[0], w.shape[1], w.shape[2]
	at := func(k, o, i int) int { return (o*in+i)*taps + k }
	if w.use == compute.UseConvTranspose {
		in, out = out, in
		at = func(k, o, i int) int { return (i*out+o)*taps + k }
	}
	switch {
	case k.convolvePairs != nil && w.dtype == compute.BF16:
		w.pairs = packTapPairs(v, taps, out, in, at)
		w.private = 2 * int64(len(w.pairs))
	case k.panels.there():
		w.panels = packTapPanels(v, taps, out, in, at)
		w.private = 4 * int64(len(w.panels))
	default:
		w.packed = packTaps(v, taps, out, in, at)
		w.private = 4 * int64(len(w.packed))
	}
}

// checkTensor returns the number of elements.
func checkTensor(t compute.Tensor, use compute.Use, as compute.DType) (int, error) {
	if as != compute.F32 && as != compute.BF16 {
		return 0, fmt.Errorf("cannot keep it as %v, only as F32 or BF16", as)
	}
	switch t.DType {
	case compute.F32, compute.BF16, compute.F16, compute.F64, compute.F8E4M3, compute.F8E5M2:
	default:
		return 0, fmt.Errorf("stored as %v, which is not a type of weights", t.DType)
	}
	switch use {
	case compute.UseLinear, compute.UseTable, compute.UseColdTable:
		if len(t.Shape) != 2 {
			return 0, fmt.Errorf("shape %v, want two dimensions", t.Shape)
		}
	case compute.UseConv, compute.UseConvTranspose:
		if len(t.Shape) != 3 {
			return 0, fmt.Errorf("shape %v, want three dimensions", t.Shape)
		}
	case compute.UseVector:
	default:
		return 0, fmt.Errorf("unknown use %d", use)
	}
	n, limit := 1, len(t.Data)/t.DType.Size()
	for _, d := range t.Shape {
		if d <= 0 {
			return 0, fmt.Errorf("shape %v has an empty dimension", t.Shape)
		}
		if d > limit/n {
			return 0, fmt.Errorf("shape %v needs more than the %d bytes there are", t.Shape, len(t.Data))
		}
		n *= d
	}
	if n*t.DType.Size() != len(t.Data) {
		return 0, fmt.Errorf("shape %v of %v needs %d bytes, there are %d", t.Shape, t.DType, n*t.DType.Size(), len(t.Data))
	}
	return n, nil
}

// values decodes the whole tensor, rounded to as.
func values(t compute.Tensor, n int, as compute.DType) []float32 {
	v := make([]float32, n)
	decode(v, t.Data, t.DType)
	if t.DType != compute.BF16 {
		rounding(as == compute.BF16).slice(v)
	}
	return v
}

// roundedBits decodes the tensor piece by piece, so that no second copy of a large
// one is ever held.
func roundedBits(t compute.Tensor, n int, k *kernels) []uint16 {
	bits := make([]uint16, n)
	var piece [1024]float32
	size := t.DType.Size()
	for i := 0; i < n; i += len(piece) {
		part := piece[:min(len(piece), n-i)]
		decode(part, t.Data[i*size:], t.DType)
		k.narrow(bits[i:], part)
	}
	return bits
}

// inPlace views little-endian data as numbers, or copies where the address or the
// machine's byte order does not allow that.
func inPlace[T float32 | uint16](data []byte, n int) (v []T, copied bool) {
	var zero T
	at := unsafe.Pointer(unsafe.SliceData(data))
	if uintptr(at)%unsafe.Alignof(zero) == 0 && littleEndian() {
		return unsafe.Slice((*T)(at), n), false
	}
	v = make([]T, n)
	switch v := any(v).(type) {
	case []float32:
		decode(v, data, compute.F32)
	case []uint16:
		for i := range v {
			v[i] = uint16(data[2*i]) | uint16(data[2*i+1])<<8
		}
	}
	return v, true
}

func littleEndian() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}

var errClosed = errors.New("cpu: the device is closed")
