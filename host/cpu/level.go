package cpu

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

//go:generate go run ./internal/asm

// A level is a set of instructions that kernels are written for. The portable Go code
// is the level "go"; it is there on every machine and is the specification of the others.
type level string

const (
	levelGo         level = "go"
	levelAVX2       level = "avx2"       // with FMA
	levelAVX512     level = "avx512"     // F, BW, DQ and VL
	levelAVX512BF16 level = "avx512bf16" // and VDPBF16PS
	levelAMX        level = "amx"        // and tiles of bfloat16
	levelNEON       level = "neon"       // every arm64
)

// note says how a level multiplies with bfloat16 weights.
func (l level) note() string {
	switch l {
	case levelGo:
		return "portable"
	case levelAVX512BF16:
		return "bfloat16 products with VDPBF16PS"
	case levelAMX:
		return "bfloat16 weights on tiles"
	}
	return "bfloat16 products in float32"
}

// levelVariable is the environment variable that forces a level.
const levelVariable = "SKALD_CPU"

func knownLevels() []level {
	return []level{levelGo, levelAVX2, levelAVX512, levelAVX512BF16, levelAMX, levelNEON}
}

// chooseLevel returns the level of that name, or for an empty name the one that the
// environment names, or else the fastest there is.
func chooseLevel(name string) (level, error) {
	available, fastest := machineLevels()
	if name == "" {
		name = os.Getenv(levelVariable)
	}
	l := level(name)
	switch {
	case name == "":
		return fastest, nil
	case slices.Contains(available, l):
		return l, nil
	case slices.Contains(knownLevels(), l):
		return "", fmt.Errorf("cpu: this machine or build lacks the level %q (%s): it has %s", name, levelVariable, names(available))
	}
	return "", fmt.Errorf("cpu: unknown level %q (%s): want one of %s, or nothing for the fastest", name, levelVariable, names(available))
}

// Levels are the names of the levels that this machine and this build have, of which
// Options.Level and the environment variable SKALD_CPU choose. The portable one is always
// among them.
func Levels() []string {
	available, _ := machineLevels()
	list := make([]string, len(available))
	for i, l := range available {
		list[i] = string(l)
	}
	return list
}

func names(levels []level) string {
	s := make([]string, len(levels))
	for i, l := range levels {
		s[i] = string(l)
	}
	return strings.Join(s, ", ")
}

// kernels are the inner loops of the operations at one level. The device holds one
// set of them; it comes to the operations with their scratch memory.
type kernels struct {
	panels panelKernels // none at the level "go"

	bf16Linear func() bf16Linear        // nil where panels do it
	packPairs  func(w *weight) []uint16 // nil where bf16Linear reads matrices as they lie

	attendBF16    func(q *queue, batch int) // runs q.full, for bfloat16; nil where panels do it
	convolvePairs func(q *queue, batch int) // runs q.conv, likewise

	f32, bf16 elements // for stores of float32 and of bfloat16

	cachedF32, cachedBF16 cachedKernels // for caches of these types

	// The functions of the same names.
	widen          func(dst []float32, src []uint16)
	narrow         func(dst []uint16, src []float32)
	sum            func(x []float32) float32
	squares        func(x []float32, mean float32) float32
	axpy           func(y []float32, a float32, x []float32)
	firstNotFinite func(x []float32) int
	softmaxRow     func(p []float32, scale float32, state *softmaxState) (shrink float32)
}

// portableKernels are those of the level "go".
func portableKernels() kernels {
	return kernels{
		f32: rounding(false).elements(), bf16: rounding(true).elements(),
		cachedF32: portableCached(), cachedBF16: portableCached(),
		widen: widen, narrow: narrow,
		sum: sum, squares: squares, axpy: axpy,
		firstNotFinite: firstNotFinite, softmaxRow: softmaxRow,
	}
}
