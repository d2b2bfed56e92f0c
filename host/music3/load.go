package music3

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// loader hands tensors to the device, counts their bytes and keeps the first error,
// so that the components can list their weights without a branch after each.
type loader struct {
	ctx       context.Context
	dev       compute.Device
	src       Source
	component string
	progress  func(component string, bytes int64)
	counting  *countingDevice // when nothing is loaded: tensors need no data then
	err       error
}

// tensor finds a tensor of the current component.
func (l *loader) tensor(name string) compute.Tensor {
	if l.err != nil {
		return compute.Tensor{}
	}
	if err := l.ctx.Err(); err != nil {
		l.err = context.Cause(l.ctx)
		return compute.Tensor{}
	}
	t, ok := l.src.Tensor(l.component, name)
	if !ok {
		l.err = fmt.Errorf("music3: %s has no tensor %q", l.component, name)
		return compute.Tensor{}
	}
	d, err := dtypeOf(t.DType)
	if err != nil {
		l.err = fmt.Errorf("music3: %s tensor %q: %w", l.component, name, err)
		return compute.Tensor{}
	}
	return compute.Tensor{Name: l.component + "." + name, DType: d, Shape: t.Shape, Data: t.Data}
}

// put loads a tensor that was cut or computed here.
func (l *loader) put(t compute.Tensor, use compute.Use, as compute.DType) compute.Weight {
	if l.err != nil {
		return nil
	}
	w, err := l.dev.Load(t, use, as)
	if err != nil {
		l.err = fmt.Errorf("music3: loading %s: %w", t.Name, err)
		return nil
	}
	if l.counting != nil && use != compute.UseColdTable {
		l.counting.reads(l.component, t)
	}
	if l.progress != nil {
		l.progress(l.component, tensorBytes(t))
	}
	return w
}

func tensorBytes(t compute.Tensor) int64 {
	n := int64(t.DType.Size())
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// putMade is put for a tensor whose values were computed here.
func (l *loader) putMade(t compute.Tensor, use compute.Use, as compute.DType) compute.Weight {
	c := l.counting
	if c == nil {
		return l.put(t, use, as)
	}
	t.Data = nil
	before := c.inPlace
	w := l.put(t, use, as)
	c.private += c.inPlace - before // nobody else has it
	c.inPlace = before
	return w
}

// weight loads a tensor as it is.
func (l *loader) weight(name string, use compute.Use, as compute.DType) compute.Weight {
	return l.put(l.tensor(name), use, as)
}

// floats reads a tensor's values, rounded to as.
func (l *loader) floats(name string, as compute.DType) []float32 {
	t := l.tensor(name)
	if l.err != nil {
		return nil
	}
	if l.counting != nil {
		l.counting.reads(l.component, t)
		return make([]float32, tensorBytes(t)/int64(t.DType.Size()))
	}
	v, err := decode(t)
	if err != nil {
		l.err = err
		return nil
	}
	if as == compute.BF16 {
		roundAll(v)
	}
	return v
}

// rows cuts rows lo to hi out of a matrix without copying.
func rows(t compute.Tensor, lo, hi int) compute.Tensor {
	if t.Shape == nil { // there was an error
		return t
	}
	width := t.DType.Size()
	for _, n := range t.Shape[1:] {
		width *= n
	}
	if t.Data != nil {
		t.Data = t.Data[lo*width : hi*width]
	}
	t.Shape = append([]int{hi - lo}, t.Shape[1:]...)
	t.Name = fmt.Sprintf("%s[%d:%d]", t.Name, lo, hi)
	return t
}

// fromFloats is a float32 tensor made here.
func fromFloats(name string, v []float32, shape ...int) compute.Tensor {
	data := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(x))
	}
	return compute.Tensor{Name: name, DType: compute.F32, Shape: shape, Data: data}
}

// dtypeOf maps a stored type to the device's name for it.
func dtypeOf(d checkpoint.DType) (compute.DType, error) {
	switch d {
	case "F32":
		return compute.F32, nil
	case "BF16":
		return compute.BF16, nil
	case "F16":
		return compute.F16, nil
	case "F64":
		return compute.F64, nil
	case "F8_E4M3":
		return compute.F8E4M3, nil
	case "F8_E5M2":
		return compute.F8E5M2, nil
	}
	return 0, fmt.Errorf("type %s holds no weights", d)
}

// decode reads the values of a small tensor on the host. Only the types that the
// published packagings use for such tensors are needed.
func decode(t compute.Tensor) ([]float32, error) {
	n := len(t.Data) / t.DType.Size()
	out := make([]float32, n)
	for i := range out {
		switch t.DType {
		case compute.F32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		case compute.BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
		case compute.F16:
			out[i] = halfToFloat(binary.LittleEndian.Uint16(t.Data[2*i:]))
		case compute.F64:
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:])))
		default:
			return nil, fmt.Errorf("music3: %s is stored as %v, expected F32, BF16, F16 or F64", t.Name, t.DType)
		}
	}
	return out, nil
}

// halfToFloat widens an IEEE half; exact.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, int(h>>10&31), uint32(h&1023)
	switch exp {
	case 31:
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	case 0:
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | uint32(exp+112)<<23 | frac<<13)
}

// round rounds to bfloat16, nearest even.
func round(x float32) float32 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return x // a NaN stays one
	}
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

func roundAll(v []float32) {
	for i, x := range v {
		v[i] = round(x)
	}
}

// allocator makes buffers and keeps the first error.
type allocator struct {
	dev compute.Device
	err error
}

func (a *allocator) buffer(d compute.DType, n int) compute.Buffer {
	if a.err != nil {
		return nil
	}
	b, err := a.dev.NewBuffer(d, n)
	if err != nil {
		a.err = fmt.Errorf("music3: a buffer of %d %v: %w", n, d, err)
	}
	return b
}

// upload makes a buffer that holds v.
func (a *allocator) upload(d compute.DType, v []float32) compute.Buffer {
	b := a.buffer(d, len(v))
	if a.err != nil {
		return nil
	}
	q, err := a.dev.NewQueue()
	if err != nil {
		a.err = err
		return nil
	}
	q.Upload(b, v)
	a.err = errors.Join(q.Sync(), q.Close())
	return b
}
