package main

import (
	"fmt"
	"math"
)

// each runs body for every four of count numbers and then for each that is left, with
// body on one lane and the others 0 where they are loaded. The addresses in arrays go
// along and are lost, as count is. The labels begin with name.
func (a *neon) each(name string, count armGeneral, arrays []armGeneral, body func()) {
	loop, tail, single, done := label(name+"Loop"), label(name+"Tail"), label(name+"Single"), label(name+"Done")
	next := func(bytes int) {
		for _, r := range arrays {
			a.op("ADD", bytes, r)
		}
	}
	a.op("SUBS", 4, count)
	a.op("BLT", tail)
	a.op("PCALIGN", 16)
	a.mark(loop)
	body()
	next(16)
	a.op("SUBS", 4, count)
	a.op("BGE", loop)
	a.mark(tail)
	a.op("ADDS", 4, count)
	a.op("BEQ", done)
	a.mark(single)
	a.tail = true
	body()
	a.tail = false
	next(4)
	a.op("SUBS", 1, count)
	a.op("BNE", single)
	a.mark(done)
}

// get loads the current lanes of an array.
func (a *neon) get(base armGeneral) armVector {
	v := a.v()
	a.op(map[bool]string{false: "FMOVQ", true: "FMOVS"}[a.tail], behind(base, 0), v)
	return v
}

// put stores the current lanes of an array and drops v.
func (a *neon) put(v armVector, base armGeneral) {
	a.op(map[bool]string{false: "FMOVQ", true: "FMOVS"}[a.tail], v, behind(base, 0))
	a.free(v)
}

// bits makes a constant with the same 32 bits in every lane.
func (a *neon) bits(b uint32) armVector {
	v, r := a.v(), a.r()
	a.op("MOVD", fmt.Sprintf("$%#x", b), r)
	a.op("VDUP", r, v.s4())
	a.free(r)
	return v
}

// float makes a constant with x in every lane.
func (a *neon) float(x float64) armVector { return a.bits(math.Float32bits(float32(x))) }

// The instructions on four float32 that Go's assembler lacks; fma and fms, which it has,
// add n*m to dst or take it away.
func (a *neon) fadd(dst, n, m armVector) { a.wordOf(0x4e20d400, "FADD", dst, n, m) }
func (a *neon) fsub(dst, n, m armVector) { a.wordOf(0x4ea0d400, "FSUB", dst, n, m) }
func (a *neon) fmul(dst, n, m armVector) { a.wordOf(0x6e20dc00, "FMUL", dst, n, m) }
func (a *neon) fdiv(dst, n, m armVector) { a.wordOf(0x6e20fc00, "FDIV", dst, n, m) }
func (a *neon) fmax(dst, n, m armVector) { a.wordOf(0x4e20f400, "FMAX", dst, n, m) }
func (a *neon) fma(dst, n, m armVector)  { a.op("VFMLA", m.s4(), n.s4(), dst.s4()) }
func (a *neon) fms(dst, n, m armVector)  { a.op("VFMLS", m.s4(), n.s4(), dst.s4()) }

// fcmeq sets the lanes of dst to ones where n equals m, and to zero elsewhere.
func (a *neon) fcmeq(dst, n, m armVector) { a.wordOf(0x4e20e400, "FCMEQ", dst, n, m) }

// orn is n | ^m.
func (a *neon) orn(dst, n, m armVector) { a.wordOf(0x4ee01c00, "ORN", dst, n, m) }

func (a *neon) wordOf(bits uint32, name string, dst, n, m armVector) {
	a.word(three(bits, dst, n, m), "%s V%d, V%d, V%d", name, dst, n, m)
}

// neonRounder rounds to bfloat16, nearest even; without constants it leaves numbers
// alone.
type neonRounder struct {
	on               bool
	one, half, upper armVector
}

func newNEONRounder(a *neon, on bool) neonRounder {
	if !on {
		return neonRounder{}
	}
	return neonRounder{on: true, one: a.bits(1), half: a.bits(0x7fff), upper: a.bits(0xffff0000)}
}

// round rounds v; of a NaN all upper bits are set.
func (r *neonRounder) round(a *neon, v armVector) {
	if !r.on {
		return
	}
	t, number := a.v(), a.v()
	a.fcmeq(number, v, v)
	a.op("VUSHR", 16, v.s4(), t.s4())
	a.op("VAND", r.one.b16(), t.b16(), t.b16())
	a.op("VADD", r.half.s4(), v.s4(), v.s4())
	a.op("VADD", t.s4(), v.s4(), v.s4())
	a.orn(v, v, number)
	a.op("VAND", r.upper.b16(), v.b16(), v.b16())
	a.free(t, number)
}
