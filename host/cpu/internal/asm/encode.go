package main

import (
	"encoding/binary"
	"fmt"
)

// prefix is the mandatory prefix of an instruction, as VEX and EVEX number it.
type prefix byte

const (
	prefixNone prefix = iota
	prefix66
	prefixF3
	prefixF2
)

// opcode is what an instruction has in common in all its forms, named as Intel's
// manual does: MAP is 1 for 0F, 2 for 0F38, 3 for 0F3A.
type opcode struct {
	prefix prefix
	table  byte // MAP
	w      byte
	code   byte
}

// evex encodes dst = op(src1, src2) on vectors of dst's width. src2 is a vector or
// memory; with broadcast, the memory is one number for all lanes.
func evex(o opcode, dst, src1 vector, src2 any, broadcast bool) []byte {
	r, rHigh := bit(dst.n, 3), bit(dst.n, 4)
	var x, b byte
	var tail []byte
	switch s := src2.(type) {
	case vector:
		x, b = bit(s.n, 4), bit(s.n, 3)
		tail = []byte{0xc0 | byte(dst.n&7)<<3 | byte(s.n&7)}
	case memory:
		x, b = s.high()
		tail = s.encode(dst.n)
	default:
		panic(fmt.Sprintf("%v is no operand", src2))
	}
	var length, bc byte
	for bytes := dst.bytes; bytes > 16; bytes /= 2 {
		length++
	}
	if broadcast {
		bc = 1
	}
	return append([]byte{
		0x62,
		(1-r)<<7 | (1-x)<<6 | (1-b)<<5 | (1-rHigh)<<4 | o.table,
		o.w<<7 | byte(^src1.n&15)<<3 | 1<<2 | byte(o.prefix),
		length<<5 | bc<<4 | (1-bit(src1.n, 4))<<3,
		o.code,
	}, tail...)
}

// vex encodes an instruction with three byte VEX prefix and a length bit of 0, as the
// tile instructions have it: reg and src1 are register numbers, rm is a register
// number or memory.
func vex(o opcode, reg, src1 int, rm any) []byte {
	var x, b byte
	var tail []byte
	switch s := rm.(type) {
	case int:
		b = bit(s, 3)
		tail = []byte{0xc0 | byte(reg&7)<<3 | byte(s&7)}
	case memory:
		x, b = s.high()
		tail = s.encode(reg)
	default:
		panic(fmt.Sprintf("%v is no operand", rm))
	}
	return append([]byte{
		0xc4,
		(1-bit(reg, 3))<<7 | (1-x)<<6 | (1-b)<<5 | o.table,
		o.w<<7 | byte(^src1&15)<<3 | byte(o.prefix),
		o.code,
	}, tail...)
}

func bit(n, i int) byte { return byte(n >> i & 1) }

// high returns the fourth bits of index and base.
func (m memory) high() (x, b byte) {
	if m.index != noGeneral {
		x = bit(int(m.index), 3)
	}
	return x, bit(int(m.base), 3)
}

// encode returns ModRM, SIB where needed, and a displacement of 32 bits, which is
// never scaled.
func (m memory) encode(reg int) []byte {
	const sp = 4 // in place of a base it announces a SIB, in place of an index none
	b := []byte{0x80 | byte(reg&7)<<3}
	if m.index == noGeneral && m.base&7 != sp {
		b[0] |= byte(m.base & 7)
	} else {
		index, scale := byte(sp), byte(0)
		if m.index != noGeneral {
			index = byte(m.index & 7)
			for s := m.scale; s > 1; s /= 2 {
				scale++
			}
		}
		b[0] |= sp
		b = append(b, scale<<6|index<<3|byte(m.base&7))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(int32(m.disp)))
}

// vdpbf16ps adds to each lane of dst the two products of the bfloat16 pairs of a and b.
func (fn *function) vdpbf16ps(dst, a, b vector) {
	fn.raw(evex(opcode{prefixF3, 2, 0, 0x52}, dst, a, b, false), "VDPBF16PS %v, %v, %v", b, a, dst)
}

// vcvtne2ps2bf16 rounds low to the lower and high to the upper half of dst.
func (fn *function) vcvtne2ps2bf16(dst, high, low vector) {
	fn.raw(evex(opcode{prefixF2, 2, 0, 0x72}, dst, high, low, false), "VCVTNE2PS2BF16 %v, %v, %v", low, high, dst)
}

// tile is one of the eight tile registers of AMX.
type tile int

func (t tile) String() string { return fmt.Sprintf("TMM%d", int(t)) }

// ldtilecfg loads the shapes of the tiles from 64 bytes at m.
func (fn *function) ldtilecfg(m memory) {
	fn.raw(vex(opcode{prefixNone, 2, 0, 0x49}, 0, 0, m), "LDTILECFG %v", m)
}

// tilerelease ends the use of tiles.
func (fn *function) tilerelease() {
	fn.raw(vex(opcode{prefixNone, 2, 0, 0x49}, 0, 0, 0), "TILERELEASE")
}

// tilezero clears a tile.
func (fn *function) tilezero(t tile) {
	fn.raw(vex(opcode{prefixF2, 2, 0, 0x49}, int(t), 0, 0), "TILEZERO %v", t)
}

// tileloadd loads rows of 64 bytes, m.index bytes apart.
func (fn *function) tileloadd(m memory, t tile) {
	fn.raw(vex(opcode{prefixF2, 2, 0, 0x4b}, int(t), 0, m), "TILELOADD %v, %v", m, t)
}

// tilestored stores rows of 64 bytes, m.index bytes apart.
func (fn *function) tilestored(t tile, m memory) {
	fn.raw(vex(opcode{prefixF3, 2, 0, 0x4b}, int(t), 0, m), "TILESTORED %v, %v", t, m)
}

// tdpbf16ps adds to dst the product of a, 16 rows of 32 bfloat16, and b, 16 rows of
// 16 pairs.
func (fn *function) tdpbf16ps(dst, a, b tile) {
	fn.raw(vex(opcode{prefixF3, 2, 0, 0x5c}, int(dst), int(b), int(a)), "TDPBF16PS %v, %v, %v", b, a, dst)
}
