package main

import "fmt"

// general is a general register, by the number the encoding gives it.
type general int

// noGeneral is the absence of an index or base register.
const noGeneral general = -1

var generalNames = [16]string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

func (r general) String() string { return generalNames[r] }

// general hands out a register that is free. SP and BP belong to the frame.
func (fn *function) general() general {
	for _, r := range []general{0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} {
		if !fn.used[r] {
			fn.used[r] = true
			return r
		}
	}
	panic(fn.name + " has no general register left")
}

// release takes registers back.
func (fn *function) release(rs ...general) {
	for _, r := range rs {
		fn.used[r] = false
	}
}

// load hands out a register that holds an argument of 8 bytes.
func (fn *function) load(name string) general {
	r := fn.general()
	fn.op("MOVQ", fn.argument(name), r)
	return r
}

// vector is a vector register of 16, 32 or 64 bytes.
type vector struct {
	n     int
	bytes int
}

func (v vector) String() string {
	return fmt.Sprintf("%s%d", map[int]string{16: "X", 32: "Y", 64: "Z"}[v.bytes], v.n)
}

// as is the same register with another width.
func (v vector) as(bytes int) vector { return vector{v.n, bytes} }

// vectors are count registers of the given width, numbered from first. A machine has
// 16, with AVX-512 32.
func vectors(bytes, first, count int) []vector {
	if first+count > 32 || bytes < 64 && first+count > 16 {
		panic(fmt.Sprintf("no vector registers %d to %d of %d bytes", first, first+count-1, bytes))
	}
	vs := make([]vector, count)
	for i := range vs {
		vs[i] = vector{first + i, bytes}
	}
	return vs
}

// mask is one of the registers K1 to K7 of AVX-512.
type mask int

func (k mask) String() string { return fmt.Sprintf("K%d", int(k)) }

// memory is an operand in memory: base + index*scale + disp bytes.
type memory struct {
	base  general
	disp  int
	index general // noGeneral for none
	scale int
}

// at is the memory disp bytes behind base.
func at(base general, disp int) memory { return memory{base: base, disp: disp, index: noGeneral} }

// indexed is the memory disp bytes behind base + index*scale.
func indexed(base, index general, scale, disp int) memory {
	return memory{base: base, disp: disp, index: index, scale: scale}
}

func (m memory) String() string {
	s := fmt.Sprintf("(%v)", m.base)
	if m.disp != 0 {
		s = fmt.Sprintf("%d%s", m.disp, s)
	}
	if m.index != noGeneral {
		s += fmt.Sprintf("(%v*%d)", m.index, m.scale)
	}
	return s
}

// field is the field of a Go struct that base points at; the assembler learns its
// offset from go_asm.h.
func field(base general, structure, name string) structField {
	return structField{base, structure, name}
}

type structField struct {
	base            general
	structure, name string
}

func (f structField) String() string { return fmt.Sprintf("%s_%s(%v)", f.structure, f.name, f.base) }

// clear sets vectors to zero.
func (fn *function) clear(vs ...vector) {
	for _, v := range vs {
		if v.bytes == 64 {
			fn.op("VPXORD", v, v, v)
		} else {
			fn.op("VPXOR", v, v, v)
		}
	}
}

// times repeats body while counter, which must not be 0 at first, is counted down by
// step to 0.
func (fn *function) times(l label, counter general, step int, body func()) {
	fn.op("PCALIGN", 32)
	fn.mark(l)
	body()
	fn.op("SUBQ", step, counter)
	fn.op("JNZ", l)
}

// ret ends a function that used vector registers.
func (fn *function) ret() {
	fn.op("VZEROUPPER")
	fn.op("RET")
}

// local is the memory disp bytes into the frame of local variables.
func local(disp int) string { return fmt.Sprintf("%d(SP)", disp) }
