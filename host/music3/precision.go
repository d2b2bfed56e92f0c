package music3

import (
	"fmt"

	"skald/host/compute"
)

// Precision says in which type the activations of the two halves are stored.
type Precision string

// The precisions of the published configurations, and full float32 for parity.
const (
	FP32  Precision = "fp32"  // everything float32
	Mixed Precision = "mixed" // language side bfloat16, acoustic side float32
	BF16  Precision = "bf16"  // everything bfloat16
)

// ParsePrecision accepts the three names.
func ParsePrecision(s string) (Precision, error) {
	switch p := Precision(s); p {
	case FP32, Mixed, BF16:
		return p, nil
	}
	return "", fmt.Errorf("precision %q is not known: use fp32, mixed or bf16", s)
}

// Language is the type of the language model, depth decoder and condition encoder.
func (p Precision) Language() compute.DType {
	if p == FP32 {
		return compute.F32
	}
	return compute.BF16
}

// Acoustic is the type of the flow transformer and the vocoder.
func (p Precision) Acoustic() compute.DType {
	if p == BF16 {
		return compute.BF16
	}
	return compute.F32
}

// RaiseAcoustic returns the lowest precision, not below p, whose acoustic half is
// at least as exact as floor's.
func (p Precision) RaiseAcoustic(floor Precision) Precision {
	if p == BF16 && floor != BF16 && floor != "" {
		return Mixed
	}
	return p
}
