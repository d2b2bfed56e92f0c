//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// weight is a tensor in the form its operations read: vectors are float32, convolutions
// packed, a cold table stays where it is, and everything else lies row-major in the
// narrowest type that holds its values.
type weight struct {
	shape   []int
	dtype   compute.DType
	use     compute.Use
	private int64

	stored compute.DType
	at     cu.DevicePtr
	cold   []byte // of a cold table, in the caller's memory
}

func (w *weight) Shape() []int         { return w.shape }
func (w *weight) DType() compute.DType { return w.dtype }
func (w *weight) PrivateBytes() int64  { return w.private }

func (w *weight) numbers() int {
	n := 1
	for _, d := range w.shape {
		n *= d
	}
	return n
}

func (w *weight) c() C.skald_weight {
	return C.skald_weight{data: pointer(w.at), dtype: C.int32_t(w.stored)}
}

// stored is the type in which a tensor is kept.
func (d *device) stored(t compute.Tensor, use compute.Use, as compute.DType) compute.DType {
	stored := compute.F32
	switch {
	case use == compute.UseVector:
	case use == compute.UseColdTable:
		return t.DType
	case as == compute.BF16:
		stored = compute.BF16
	case t.DType == compute.BF16 || t.DType == compute.F16:
		stored = t.DType
	case t.DType == compute.F8E4M3 || t.DType == compute.F8E5M2:
		stored = compute.BF16 // holds them exactly
	}
	if use == compute.UseLinear && C.skald_linear_takes(C.int(as), C.int(stored), C.int(t.Shape[1])) == 0 {
		return as
	}
	return stored
}

func (d *device) Load(t compute.Tensor, use compute.Use, as compute.DType) (compute.Weight, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	n, err := checkTensor(t, use, as)
	if err != nil {
		return nil, fmt.Errorf("cuda: load %s: %w", t.Name, err)
	}
	w := &weight{shape: slices.Clone(t.Shape), dtype: as, use: use, stored: d.stored(t, use, as)}
	if use == compute.UseColdTable {
		w.cold = t.Data
		return w, nil
	}
	w.private = int64(n) * int64(w.stored.Size())
	if w.at, err = d.alloc(w.private, t.Name); err != nil {
		return nil, err
	}
	if use == compute.UseConv || use == compute.UseConvTranspose {
		err = d.loadKernel(w, t, n)
	} else {
		err = d.loader.load(w.at, w.stored, as, t, n)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: load %s: %w", t.Name, err), d.free(w.at))
	}
	return w, nil
}

// WeightBytes implements compute.Estimator. A cold table stays in the host's memory.
func (d *device) WeightBytes(t compute.Tensor, use compute.Use, as compute.DType) (inPlace, private int64) {
	if use == compute.UseColdTable {
		return 0, 0
	}
	private = int64(d.stored(t, use, as).Size())
	for _, n := range t.Shape {
		private *= int64(n)
	}
	return 0, allocated(private)
}

// BufferBytes implements compute.Estimator.
func (d *device) BufferBytes(t compute.DType, n int) int64 {
	return allocated(int64(t.Size()) * int64(n))
}

// KVCacheBytes implements compute.Estimator.
func (d *device) KVCacheBytes(c compute.KVConfig) int64 { return allocated(c.Bytes()) }

// allocated is what an allocation takes by the driver's alignment.
func allocated(bytes int64) int64 { return (bytes + 511) &^ 511 }

// loadKernel loads the kernel of a convolution and packs it.
func (d *device) loadKernel(w *weight, t compute.Tensor, n int) error {
	plain, err := d.alloc(w.private, t.Name)
	if err != nil {
		return err
	}
	out, in, taps, transposed := t.Shape[0], t.Shape[1], t.Shape[2], C.int(0)
	if w.use == compute.UseConvTranspose {
		out, in, transposed = in, out, 1
	}
	if err = d.loader.load(plain, w.stored, w.dtype, t, n); err == nil {
		err = d.loader.run("packing", func(s cu.Stream) error {
			return kernel(C.skald_pack_conv(C.int(w.stored), pointer(w.at), pointer(plain), C.int(out), C.int(in), C.int(taps), transposed, streamPointer(s)))
		})
	}
	return errors.Join(err, d.free(plain))
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
	dimensions := map[compute.Use]int{
		compute.UseLinear: 2, compute.UseTable: 2, compute.UseColdTable: 2, compute.UseConv: 3, compute.UseConvTranspose: 3, compute.UseVector: len(t.Shape),
	}
	want, ok := dimensions[use]
	if !ok {
		return 0, fmt.Errorf("unknown use %d", use)
	}
	if len(t.Shape) != want {
		return 0, fmt.Errorf("shape %v, want %d dimensions", t.Shape, want)
	}
	n, limit := 1, len(t.Data)/t.DType.Size()
	for _, d := range t.Shape {
		if d <= 0 || d > math.MaxInt32 {
			return 0, fmt.Errorf("shape %v has a dimension that is empty or too large", t.Shape)
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
