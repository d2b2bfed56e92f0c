package bench

import (
	"encoding/binary"
	"math"

	"skald/host/checkpoint"
)

// weights makes up the tensors of a model in memory: time does not depend on their
// values, as long as they are neither zero nor denormal. Each tensor is made when it is
// asked for. It is a music3.Source.
type weights struct {
	specs map[[2]string]checkpoint.Spec
	dtype func(component string) checkpoint.DType
}

func newWeights(c checkpoint.Config, dtype func(component string) checkpoint.DType) *weights {
	w := &weights{specs: map[[2]string]checkpoint.Spec{}, dtype: dtype}
	for _, s := range checkpoint.Inventory(c) {
		w.specs[[2]string{s.Component, s.Name}] = s
	}
	return w
}

// Tensor returns small numbers around zero in a pattern that repeats.
func (w *weights) Tensor(component, name string) (checkpoint.Tensor, bool) {
	s, ok := w.specs[[2]string{component, name}]
	if !ok {
		return checkpoint.Tensor{}, false
	}
	t := checkpoint.Tensor{Name: name, DType: w.dtype(component), Shape: s.Shape}
	const period = 8191 // a prime, so that rows differ
	size := t.DType.Size()
	pattern := make([]byte, period*size)
	for i := range period {
		v := float32(math.Sin(float64(i)*1.618)) * 0.02
		if size == 2 {
			binary.LittleEndian.PutUint16(pattern[2*i:], uint16(math.Float32bits(v)>>16))
		} else {
			binary.LittleEndian.PutUint32(pattern[4*i:], math.Float32bits(v))
		}
	}
	t.Data = make([]byte, t.Elements()*size)
	for at := 0; at < len(t.Data); {
		at += copy(t.Data[at:], pattern)
	}
	return t, true
}
