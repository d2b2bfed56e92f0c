package cpu

import (
	"unsafe"

	"skald/host/compute"
)

// WeightBytes is what Load takes of a tensor: what stays where it lies and is read there,
// and what is the device's own. Of the tensor only its type and shape count, and whether
// its data, if it has any, lies at an address that can be read in place.
func (d *device) WeightBytes(t compute.Tensor, use compute.Use, as compute.DType) (inPlace, private int64) {
	n := int64(1)
	for _, x := range t.Shape {
		n *= int64(x)
	}
	k := &d.kernels
	form := formOf(t.DType, use, as)
	switch form {
	case kernelForm:
		return 0, kernelBytes(t.Shape, use, as, k)
	case floatsInPlace, bitsInPlace:
		size := int64(t.DType.Size())
		if uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))%uintptr(size) != 0 {
			private = size * n
		} else {
			inPlace = size * n
		}
	case ownFloats:
		private = 4 * n
	case ownBits:
		private = 2 * n
	}
	if use != compute.UseLinear {
		return inPlace, private
	}
	switch bits := form == bitsInPlace || form == ownBits; d.packed(t.Shape, bits, as, inPlace > 0) {
	case asPairs:
		inPlace, private = 0, private+2*pairCount(t.Shape)
	case asPanels:
		inPlace, private = 0, private+panelBytes(t.Shape)
	}
	return inPlace, private
}

// kernelBytes is what the kernel of a convolution takes, see packKernel.
func kernelBytes(shape []int, use compute.Use, as compute.DType, k *kernels) int64 {
	out, in, taps := shape[0], shape[1], shape[2]
	if use == compute.UseConvTranspose {
		in, out = out, in
	}
	switch {
	case k.convolvePairs != nil && as == compute.BF16:
		return 2 * int64(tapPairs(taps, out, in))
	case k.panels.there():
		return 4 * int64(roundUp(out, panelColumns)*taps*in)
	}
	return 4 * int64(out*in*taps)
}

// BufferBytes is what NewBuffer takes: numbers of all types are kept in 32 bits.
func (d *device) BufferBytes(_ compute.DType, n int) int64 { return 4 * int64(n) }

// KVCacheBytes is what NewKVCache takes.
func (d *device) KVCacheBytes(c compute.KVConfig) int64 { return layoutKV(c).bytes() }
