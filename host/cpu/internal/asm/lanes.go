package main

import (
	"fmt"
	"math"
)

// lanes is a function on vectors of one width, AVX2's, AVX-512's or NEON's. Its methods
// are written once for all; bytes is the width.
//
// Within each, an operation on memory covers the lanes that are left: all of them in
// the main loop, the first few behind it. NEON has no masks: there the loop behind the
// main one takes one lane at a time, and the other lanes are 0.
type lanes struct {
	*function
	file  *file
	bytes int
	used  [32]bool // vector registers handed out, by number

	index general // of the first number, inside each
	tail  bool    // only some lanes count
	left  vector  // AVX2: which lanes count, as all ones
}

// cx is kept free for each: a variable shift has its count nowhere else.
const cx general = 1

// AVX-512: which lanes count, and a mask for use within one operation.
const (
	leftMask mask = 1
	spare    mask = 2
)

// perLevel adds a function for AVX2 and one for AVX-512. The level is appended to
// the name; doc is a sentence that goes on behind the name.
func (f *file) perLevel(name, signature, doc string, write func(l *lanes)) {
	type width struct {
		name  string
		bytes int
	}
	levels := []width{{"AVX2", 32}, {"AVX512", 64}}
	if f.arch == "arm64" {
		levels = []width{{"NEON", 16}}
	}
	for _, level := range levels {
		fn := f.function(name+level.name, signature, name+level.name+" "+doc)
		l := &lanes{function: fn, file: f, bytes: level.bytes}
		fn.used[cx] = true
		write(l)
		fn.ret()
	}
}

// wide tells AVX-512 from the others.
func (l *lanes) wide() bool { return l.bytes == 64 }

// neon tells NEON from the others.
func (l *lanes) neon() bool { return l.bytes == 16 }

// count is how many float32 a vector holds.
func (l *lanes) count() int { return l.bytes / 4 }

// vector hands out a vector register that is free.
func (l *lanes) vector() vector {
	count := l.bytes / 2 // 16 or 32 of them
	if l.neon() {
		count = neonRegisters
	}
	for n := range count {
		if !l.used[n] {
			l.used[n] = true
			return vector{n, l.bytes}
		}
	}
	panic(l.name + " has no vector register left")
}

// vectors hands out n of them.
func (l *lanes) vectors(n int) []vector {
	vs := make([]vector, n)
	for i := range vs {
		vs[i] = l.vector()
	}
	return vs
}

// drop takes vector registers back.
func (l *lanes) drop(vs ...vector) {
	for _, v := range vs {
		l.used[v.n] = false
	}
}

// copy hands out a register that holds what v, a register or a constant, does.
func (l *lanes) copy(v any) vector {
	c := l.vector()
	l.op("VMOVUPS", v, c)
	return c
}

// bits makes a constant with the same 32 bits in every lane. It is kept in a register,
// but for AVX2, which has half of them, in memory: it can only be the first operand.
func (l *lanes) bits(b uint32) any {
	if l.bytes == 32 {
		return l.file.constant(uint64(b)<<32 | uint64(b))
	}
	v, r := l.vector(), l.general()
	l.op("MOVL", immediate(uint64(b)), r)
	l.op("VPBROADCASTD", r, v)
	l.release(r)
	return v
}

// float makes a constant with x in every lane.
func (l *lanes) float(x float64) any { return l.bits(math.Float32bits(float32(x))) }

// double makes a constant with a float64 in every lane.
func (l *lanes) double(x float64) any {
	if l.bytes == 32 {
		return l.file.constant(math.Float64bits(x))
	}
	v, r := l.vector(), l.general()
	l.op("MOVQ", immediate(math.Float64bits(x)), r)
	l.op("VPBROADCASTQ", r, v)
	l.release(r)
	return v
}

// immediate is an operand.
func immediate(b uint64) string { return fmt.Sprintf("$%#x", b) }

// parameter hands out a register with a float32 parameter in every lane.
func (l *lanes) parameter(name string) vector {
	v := l.vector()
	l.op("VBROADCASTSS", l.argument(name), v)
	return v
}

// each runs body for every vector of the numbers 0 to n, a parameter of type int or
// the length of a slice.
func (l *lanes) each(n string, body func()) {
	l.op("MOVQ", l.argument(n), cx)
	l.eachOf(n, body)
}

// eachOf is each with the count in CX, where it is lost. The labels are named after n.
func (l *lanes) eachOf(n string, body func()) {
	l.index = l.general()
	if l.bytes == 32 {
		l.left = l.vector()
	}
	loop, tail, done := label(n+"Loop"), label(n+"Tail"), label(n+"Done")
	l.op("XORL", l.index, l.index)
	l.op("SUBQ", l.count(), cx)
	l.op("JLT", tail)
	l.op("PCALIGN", 32)
	l.mark(loop)
	body()
	l.op("ADDQ", l.count(), l.index)
	l.op("SUBQ", l.count(), cx)
	l.op("JGE", loop)
	l.mark(tail)
	l.op("ADDQ", l.count(), cx)
	l.op("JZ", done)
	l.comment("The lanes that are left.")
	l.tail = true
	if l.neon() {
		one := label(n + "One")
		l.mark(one)
		body()
		l.op("ADDQ", 1, l.index)
		l.op("SUBQ", 1, cx)
		l.op("JNZ", one)
	} else {
		l.mask()
		body()
	}
	l.tail = false
	l.mark(done)
	if l.bytes == 32 {
		l.drop(l.left)
	}
	l.release(l.index)
}

// mask makes the first CX lanes those that count.
func (l *lanes) mask() {
	r := l.general()
	if l.wide() {
		l.op("MOVL", 1, r)
		l.op("SHLL", cx, r)
		l.op("DECL", r)
		l.op("KMOVW", r, leftMask)
	} else {
		lane := l.vector()
		l.op("MOVQ", immediate(0x0706050403020100), r)
		l.op("VMOVQ", r, lane.as(16))
		l.op("VPMOVZXBD", lane.as(16), lane)
		l.op("VMOVD", cx, l.left.as(16))
		l.op("VPBROADCASTD", l.left.as(16), l.left)
		l.op("VPCMPGTD", lane, l.left, l.left)
		l.drop(lane)
	}
	l.release(r)
}

// element is the memory of the current lanes of an array.
func (l *lanes) element(base general) memory { return indexed(base, l.index, 4, 0) }

// get loads the current lanes of an array; those that do not count are 0.
func (l *lanes) get(base general) vector {
	v := l.vector()
	switch {
	case !l.tail:
		l.op("VMOVUPS", l.element(base), v)
	case l.neon():
		l.op("VMOVSS", l.element(base), v)
	case l.wide():
		l.op("VMOVUPS.Z", l.element(base), leftMask, v)
	default:
		l.op("VMASKMOVPS", l.element(base), l.left, v)
	}
	return v
}

// put stores the current lanes of an array and drops v.
func (l *lanes) put(v vector, base general) {
	switch {
	case !l.tail:
		l.op("VMOVUPS", v, l.element(base))
	case l.neon():
		l.op("VMOVSS", v, l.element(base))
	case l.wide():
		l.op("VMOVUPS", v, leftMask, l.element(base))
	default:
		l.op("VMASKMOVPS", v, l.left, l.element(base))
	}
	l.drop(v)
}

// keep sets the lanes of v that do not count to 0.
func (l *lanes) keep(v vector) {
	switch {
	case !l.tail:
	case l.neon():
		l.line(fmt.Sprintf("FMOVS F%d, F%d", v.n, v.n))
	case l.wide():
		l.op("VMOVAPS.Z", v, leftMask, v)
	default:
		l.op("VANDPS", l.left, v, v)
	}
}

// fold brings the lanes of v together, halves first, and leaves the result in the
// lowest; op is "ADD" or "MAX".
func (l *lanes) fold(v vector, op string) {
	t := l.vector()
	if l.neon() {
		for _, bytes := range []uint32{8, 4} {
			l.word(ext16B|bytes<<11, fmt.Sprintf("EXT $%d,", bytes), t, v, v)
			l.op("V"+op+"PS", t, v, v)
		}
		l.drop(t)
		return
	}
	if l.wide() {
		l.op("VEXTRACTF32X8", 1, v, t.as(32))
		l.op("V"+op+"PS", t.as(32), v.as(32), v.as(32))
		l.op("VEXTRACTF32X4", 1, v.as(32), t.as(16))
	} else {
		l.op("VEXTRACTF128", 1, v.as(32), t.as(16))
	}
	l.op("V"+op+"PS", t.as(16), v.as(16), v.as(16))
	l.op("VPSRLDQ", 8, v.as(16), t.as(16))
	l.op("V"+op+"PS", t.as(16), v.as(16), v.as(16))
	l.op("VPSRLDQ", 4, v.as(16), t.as(16))
	l.op("V"+op+"SS", t.as(16), v.as(16), v.as(16))
	l.drop(t)
}

// raise sets the lanes of most that count to the larger of theirs and those of v, and
// drops v.
func (l *lanes) raise(most, v vector) {
	switch {
	case !l.tail:
		l.op("VMAXPS", v, most, most)
	case l.neon():
		l.op("VBROADCASTSS", v, v)
		l.op("VMAXPS", v, most, most)
	case l.wide():
		l.op("VMAXPS", v, most, leftMask, most)
	default:
		l.op("VBLENDVPS", l.left, v, most, v)
		l.op("VMAXPS", v, most, most)
	}
	l.drop(v)
}
