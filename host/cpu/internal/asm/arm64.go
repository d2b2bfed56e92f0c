package main

import (
	"fmt"
	"strings"
)

// neon is a function on arm64 with its registers. Its methods that are named as
// instructions write those that Go's assembler lacks, as words; operands are in the
// order of Arm's manual, the destination first.
type neon struct {
	*function
	general [32]bool // registers handed out, by number
	vector  [32]bool
	tail    bool // within each: only the lowest lane counts
}

// neonFunction adds a function to a file of arm64. The level is appended to the name; doc
// is a sentence that goes on behind the name.
func (f *file) neonFunction(name, signature, doc string, write func(a *neon)) {
	name += "NEON"
	a := &neon{function: f.function(name, signature, name+" "+doc)}
	write(a)
	a.op("RET")
}

// armGeneral is a general register of 64 bits.
type armGeneral int

func (r armGeneral) String() string { return fmt.Sprintf("R%d", int(r)) }

// armVector is a vector register of 16 bytes.
type armVector int

// As Go's assembler names its parts: four words, two double words, 16 bytes, and the
// whole as loads and stores do; the lowest word has the name of the whole.
func (v armVector) s4() string     { return fmt.Sprintf("V%d.S4", int(v)) }
func (v armVector) h8() string     { return fmt.Sprintf("V%d.H8", int(v)) }
func (v armVector) h4() string     { return fmt.Sprintf("V%d.H4", int(v)) }
func (v armVector) d2() string     { return fmt.Sprintf("V%d.D2", int(v)) }
func (v armVector) b16() string    { return fmt.Sprintf("V%d.B16", int(v)) }
func (v armVector) String() string { return fmt.Sprintf("F%d", int(v)) }

// r hands out a general register that is free. R16 to R18 and those from R26 on have
// other uses.
func (a *neon) r() armGeneral {
	for n := range 26 {
		if !a.general[n] && (n < 16 || n > 18) {
			a.general[n] = true
			return armGeneral(n)
		}
	}
	panic(a.name + " has no general register left")
}

// v hands out a vector register that is free.
func (a *neon) v() armVector {
	for n := range a.vector {
		if !a.vector[n] {
			a.vector[n] = true
			return armVector(n)
		}
	}
	panic(a.name + " has no vector register left")
}

// vs hands out n of them.
func (a *neon) vs(n int) []armVector {
	vs := make([]armVector, n)
	for i := range vs {
		vs[i] = a.v()
	}
	return vs
}

// free takes registers back.
func (a *neon) free(registers ...any) {
	for _, r := range registers {
		switch r := r.(type) {
		case armGeneral:
			a.general[r] = false
		case armVector:
			a.vector[r] = false
		default:
			panic(fmt.Sprintf("%v is no register", r))
		}
	}
}

// load hands out a register that holds an argument of 8 bytes.
func (a *neon) load(name string) armGeneral {
	r := a.r()
	a.op("MOVD", a.argument(name), r)
	return r
}

// field hands out a register that holds a field of 8 bytes of a Go struct that base
// points at; the assembler learns its offset from go_asm.h.
func (a *neon) field(base armGeneral, structure, name string) armGeneral {
	r := a.r()
	a.op("MOVD", fmt.Sprintf("%s_%s(%v)", structure, name, base), r)
	return r
}

// behind is the memory disp bytes behind base.
func behind(base armGeneral, disp int) string {
	if disp == 0 {
		return fmt.Sprintf("(%v)", base)
	}
	return fmt.Sprintf("%d(%v)", disp, base)
}

// zero sets vectors to zero.
func (a *neon) zero(vs ...armVector) {
	for _, v := range vs {
		a.op("VEOR", v.b16(), v.b16(), v.b16())
	}
}

// word writes an instruction by its bits.
func (a *neon) word(bits uint32, format string, args ...any) {
	a.line(fmt.Sprintf("WORD $%#08x // ", bits) + fmt.Sprintf(format, args...))
}

// three encodes dst = op(n, m).
func three(bits uint32, dst, n, m armVector) uint32 {
	return bits | uint32(m)<<16 | uint32(n)<<5 | uint32(dst)
}

// fmlaElement adds to dst the product of n with word i of m.
func (a *neon) fmlaElement(dst, n, m armVector, i int) {
	bits := three(0x4f801000, dst, n, m) | uint32(i&1)<<21 | uint32(i>>1)<<11
	a.word(bits, "FMLA V%d.4S, V%d.4S, V%d.S[%d]", dst, n, m, i)
}

// list is the operand of several registers that follow each other.
func list(vs []armVector, arrangement func(armVector) string) string {
	names := make([]string, len(vs))
	for i, v := range vs {
		if v != vs[0]+armVector(i) {
			panic(fmt.Sprintf("%v do not follow each other", vs))
		}
		names[i] = arrangement(v)
	}
	return "[" + strings.Join(names, ", ") + "]"
}
