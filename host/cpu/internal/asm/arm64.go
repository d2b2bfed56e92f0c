package main

import "fmt"

// The kernels that go by lanes are written once, in the instructions of AVX2. For arm64
// each of these is translated into one or two of NEON that do the same to four lanes;
// those that Go's assembler lacks are written as words.
//
// General register n is Rn, vector register n is Vn. R25 and R26 hold what an
// instruction takes from memory and the address of it, V30 and V31 what it
// needs on the way.

const (
	armValue   = "R25"
	armAddress = "R26"
)

// neonRegisters is how many vector registers are handed out.
const neonRegisters = 30

var scratch1, scratch2 = vector{31, 16}, vector{30, 16}

// Instructions on vectors by their encoding, without the registers. Those of float64 have
// bit 22 set besides.
const (
	fadd4S = 0x4e20d400
	fsub4S = 0x4ea0d400
	fmul4S = 0x6e20dc00
	fdiv4S = 0x6e20fc00
	fmax4S = 0x4e20f400
	fmla4S = 0x4e20cc00
	fmls4S = 0x4ea0cc00
	fneg4S = 0x6ea0f800
	is2D   = 1 << 22

	fcmeq4S = 0x4e20e400
	fcmgt4S = 0x6ea0e400
	cmlt4S  = 0x4ea0a800 // with zero
	umaxv4S = 0x6eb0a800
	add4S   = 0x4ea08400
	shl     = 0x4f005400
	ushr    = 0x6f000400

	and16B = 0x4e201c00
	orr16B = 0x4ea01c00
	eor16B = 0x6e201c00
	not16B = 0x6e205800
	bit16B = 0x6ea01c00
	bif16B = 0x6ee01c00

	ext16B  = 0x6e000000
	dupS0   = 0x4e040400
	zip1of4 = 0x4e803800
	zip2of4 = 0x4e807800
	zip1of2 = 0x4ec03800
	zip2of2 = 0x4ec07800

	fcvtl  = 0x0e617800
	fcvtl2 = 0x4e617800
	fcvtn  = 0x0e616800
	fcvtn2 = 0x4e616800
	xtn4H  = 0x0e612800
	shll4S = 0x2e613800 // by 16
	shll2  = 0x6e613800

	fmlaByElement = 0x4f801000 // element 0
)

// word writes an instruction on vectors: d = op(n, m).
func (fn *function) word(op uint32, name string, d, n, m vector) {
	fn.line(fmt.Sprintf("WORD $0x%08x // %s V%d, V%d, V%d", op|uint32(m.n)<<16|uint32(n.n)<<5|uint32(d.n), name, d.n, n.n, m.n))
}

// word2 writes one with one source.
func (fn *function) word2(op uint32, name string, d, n vector) {
	fn.line(fmt.Sprintf("WORD $0x%08x // %s V%d, V%d", op|uint32(n.n)<<5|uint32(d.n), name, d.n, n.n))
}

// copyTo copies a vector register.
func (fn *function) copyTo(d, n vector) { fn.word(orr16B, "MOV", d, n, n) }

// armRegister is the name of a general register.
func armRegister(r general) string { return fmt.Sprintf("R%d", int(r)) }

// armMemory is the operand for memory, whose address it may have to compute.
func (fn *function) armMemory(o any) string {
	switch o := o.(type) {
	case string: // an argument
		return o
	case structField:
		return fmt.Sprintf("%s_%s(%s)", o.structure, o.name, armRegister(o.base))
	case memory:
		base := armRegister(o.base)
		if o.index != noGeneral {
			fn.line(fmt.Sprintf("ADD %s<<%d, %s, %s", armRegister(o.index), log2(o.scale), base, armAddress))
			base = armAddress
		}
		return fmt.Sprintf("%d(%s)", o.disp, base)
	}
	panic(fmt.Sprintf("%v is not in memory", o))
}

func log2(n int) (l int) {
	for ; n > 1; n /= 2 {
		l++
	}
	return l
}

// armOperand is the operand of an integer instruction, loaded if it is in memory.
func (fn *function) armOperand(o any) string {
	switch o := o.(type) {
	case int:
		return fmt.Sprintf("$%d", o)
	case general:
		return armRegister(o)
	case string:
		if o[0] == '$' {
			return o
		}
	}
	fn.line(fmt.Sprintf("MOVD %s, %s", fn.armMemory(o), armValue))
	return armValue
}

// armVector is a source that must be a vector, loaded if it is in memory.
func (fn *function) armVector(o any) vector {
	if v, ok := o.(vector); ok {
		return v
	}
	fn.line(fmt.Sprintf("FMOVQ %s, F%d", fn.armMemory(o), scratch2.n))
	return scratch2
}

var armInteger = map[string]string{"ADDQ": "ADDS", "SUBQ": "SUBS", "SHLQ": "LSL", "IMULQ": "MUL"}

var armJump = map[string]string{"JMP": "B", "JZ": "BEQ", "JEQ": "BEQ", "JNZ": "BNE", "JNE": "BNE", "JLT": "BLT", "JGE": "BGE"}

// armThree are instructions whose last source comes first here.
var armThree = map[string]struct {
	op   uint32
	name string
}{
	"VADDPS": {fadd4S, "FADD.4S"}, "VADDSS": {fadd4S, "FADD.4S"}, "VSUBPS": {fsub4S, "FSUB.4S"}, "VMULPS": {fmul4S, "FMUL.4S"}, "VDIVPS": {fdiv4S, "FDIV.4S"},
	"VMAXPS": {fmax4S, "FMAX.4S"}, "VFMADD231PS": {fmla4S, "FMLA.4S"}, "VFNMADD231PS": {fmls4S, "FMLS.4S"},
	"VSUBPD": {fsub4S | is2D, "FSUB.2D"}, "VMULPD": {fmul4S | is2D, "FMUL.2D"},
	"VFMADD231PD": {fmla4S | is2D, "FMLA.2D"}, "VFNMADD231PD": {fmls4S | is2D, "FMLS.2D"},
	"VPADDD": {add4S, "ADD.4S"},
	"VANDPS": {and16B, "AND.16B"}, "VPAND": {and16B, "AND.16B"}, "VORPS": {orr16B, "ORR.16B"}, "VPOR": {orr16B, "ORR.16B"},
	"VPXOR": {eor16B, "EOR.16B"}, "VXORPD": {eor16B, "EOR.16B"},
}

// translate writes what does on arm64 what an instruction does on amd64.
func (fn *function) translate(name string, o []any) {
	switch name {
	case "RET", "PCALIGN":
		if name == "RET" {
			fn.line(name)
		}
	case "MOVQ", "MOVL":
		fn.armMove(o[0], o[1])
	case "XORL":
		fn.line("MOVD ZR, " + fn.armOperand(o[1]))
	case "INCQ":
		fn.line("ADDS $1, " + fn.armOperand(o[0]))
	case "LEAQ":
		m := o[0].(memory)
		d := armRegister(o[1].(general))
		fn.line(fmt.Sprintf("ADD %s<<%d, %s, %s", armRegister(m.index), log2(m.scale), armRegister(m.base), d))
		if m.disp != 0 {
			panic("LEAQ with a displacement")
		}
	case "CMPB":
		fn.line(fmt.Sprintf("MOVBU %s, %s", fn.armMemory(o[0]), armValue))
		fn.line(fmt.Sprintf("CMP $%d, %s", o[1], armValue))
	case "CMPQ":
		a := armRegister(o[0].(general))
		fn.line(fmt.Sprintf("CMP %s, %s", fn.armOperand(o[1]), a))
	case "TESTQ":
		fn.line("CMP $0, " + fn.armOperand(o[0]))
	case "PREFETCHT0":
		fn.line(fmt.Sprintf("PRFM %s, PLDL1KEEP", fn.armMemory(o[0])))
	case "VMOVUPS", "VMOVDQU":
		fn.armVectorMove("FMOVQ", o[0], o[1])
	case "VMOVSS":
		fn.armVectorMove("FMOVS", o[0], o[1])
	case "VBROADCASTSS":
		d := o[1].(vector)
		s, ok := o[0].(vector)
		if !ok {
			fn.armVectorMove("FMOVS", o[0], d)
			s = d
		}
		fn.word2(dupS0, "DUP.4S", d, s)
	case "VPBROADCASTD":
		fn.line(fmt.Sprintf("VDUP %s, V%d.S4", armRegister(o[0].(general)), o[1].(vector).n))
	case "VPBROADCASTQ":
		fn.line(fmt.Sprintf("VDUP %s, V%d.D2", armRegister(o[0].(general)), o[1].(vector).n))
	case "VPSLLD", "VPSRLD", "VPSLLQ":
		by, s, d := o[0].(int), o[1].(vector), o[2].(vector)
		switch name {
		case "VPSLLD":
			fn.word2(shl|uint32(32+by)<<16, fmt.Sprintf("SHL.4S $%d,", by), d, s)
		case "VPSRLD":
			fn.word2(ushr|uint32(64-by)<<16, fmt.Sprintf("USHR.4S $%d,", by), d, s)
		default:
			fn.word2(shl|uint32(64+by)<<16, fmt.Sprintf("SHL.2D $%d,", by), d, s)
		}
	case "VFMADD213PS", "VFMADD213PD", "VFMSUB213PS":
		a, b, d := o[0].(vector), o[1].(vector), o[2].(vector)
		op := uint32(fmla4S)
		switch name {
		case "VFMSUB213PS":
			fn.word2(fneg4S, "FNEG.4S", scratch1, a)
		case "VFMADD213PD":
			op |= is2D
			fn.copyTo(scratch1, a)
		default:
			fn.copyTo(scratch1, a)
		}
		fn.word(op, "FMLA", scratch1, b, d)
		fn.copyTo(d, scratch1)
	case "VFMADD132SS":
		d := o[2].(vector)
		fn.armVectorMove("FMOVS", o[0], scratch2)
		fn.copyTo(scratch1, o[1].(vector))
		fn.word(fmla4S, "FMLA.4S", scratch1, d, scratch2)
		fn.copyTo(d, scratch1)
	case "VCMPPS":
		a, b, d := o[1].(vector), o[2].(vector), o[3].(vector)
		switch o[0] {
		case 3: // unordered, of a number with itself
			if a != b {
				panic("VCMPPS of two numbers")
			}
			fn.word(fcmeq4S, "FCMEQ.4S", d, a, a)
		case 5: // b not less than a
			fn.word(fcmgt4S, "FCMGT.4S", d, a, b)
		default:
			panic("VCMPPS")
		}
		fn.word2(not16B, "NOT.16B", d, d)
	case "VPTEST":
		fn.word2(umaxv4S, "UMAXV.4S", scratch1, o[0].(vector))
		fn.line(fmt.Sprintf("FMOVS F%d, %s", scratch1.n, armValue))
		fn.line("CMPW $0, " + armValue)
	case "VBLENDVPS":
		mask, set, other, d := o[0].(vector), o[1].(vector), o[2].(vector), o[3].(vector)
		fn.word2(cmlt4S, "CMLT.4S $0,", scratch1, mask)
		switch d {
		case other:
			fn.word(bit16B, "BIT.16B", d, set, scratch1)
		case set:
			fn.word(bif16B, "BIF.16B", d, other, scratch1)
		default:
			panic("VBLENDVPS into a third register")
		}
	case "VZEROUPPER":
	default:
		if i, ok := armInteger[name]; ok {
			d := armRegister(o[1].(general))
			fn.line(fmt.Sprintf("%s %s, %s", i, fn.armOperand(o[0]), d))
			return
		}
		if j, ok := armJump[name]; ok {
			fn.line(fmt.Sprintf("%s %v", j, o[0]))
			return
		}
		i, ok := armThree[name]
		if !ok {
			panic(name + " has no translation")
		}
		fn.word(i.op, i.name, o[2].(vector), o[1].(vector), fn.armVector(o[0]))
	}
}

// armMove is MOVQ.
func (fn *function) armMove(from, to any) {
	if r, ok := to.(general); ok {
		if _, ok := from.(general); ok || isImmediate(from) {
			fn.line(fmt.Sprintf("MOVD %s, %s", fn.armOperand(from), armRegister(r)))
		} else {
			fn.line(fmt.Sprintf("MOVD %s, %s", fn.armMemory(from), armRegister(r)))
		}
		return
	}
	value := armValue
	if r, ok := from.(general); ok {
		value = armRegister(r)
	} else {
		fn.line(fmt.Sprintf("MOVD %s, %s", fn.armOperand(from), armValue))
	}
	fn.line(fmt.Sprintf("MOVD %s, %s", value, fn.armMemory(to)))
}

func isImmediate(o any) bool {
	if s, ok := o.(string); ok {
		return s[0] == '$'
	}
	_, ok := o.(int)
	return ok
}

// armVectorMove loads, stores or copies.
func (fn *function) armVectorMove(op string, from, to any) {
	s, isSource := from.(vector)
	d, isDestination := to.(vector)
	switch {
	case isSource && isDestination:
		fn.copyTo(d, s)
	case isSource:
		fn.line(fmt.Sprintf("%s F%d, %s", op, s.n, fn.armMemory(to)))
	default:
		fn.line(fmt.Sprintf("%s %s, F%d", op, fn.armMemory(from), d.n))
	}
}
