package main

// packing makes the functions that turn 16 rows of a matrix into a panel.
func packing() *file {
	f := &file{name: "pack", arch: "amd64"}
	packAVX2(f, "packF32AVX2", false)
	packAVX2(f, "packBF16AVX2", true)
	packAVX512(f, "packF32AVX512", false)
	packAVX512(f, "packBF16AVX512", true)
	return f
}

// panelAhead is how many bytes before their use the rows are asked for, into the second
// level cache: in the first, rows that are a multiple of 4 KiB apart would displace each
// other.
const panelAhead = 128

// packAhead is the same where rows are packed in pairs.
const packAhead = 256

func packFunction(f *file, name string, bits bool) *function {
	if bits {
		return f.function(name, "(dst *float32, src *uint16, stride, blocks int)",
			name+" writes a panel of 16 rows of bfloat16, stride bytes apart, widened; a block is 32 numbers of each row. blocks must be positive.")
	}
	return f.function(name, "(dst, src *float32, stride, blocks int)",
		name+" writes a panel of 16 rows, stride bytes apart; a block is 16 numbers of each row. blocks must be positive.")
}

// packAVX512 transposes blocks of 16 x 16 words of 32 bits, which are numbers or pairs
// of bfloat16.
func packAVX512(f *file, name string, bits bool) {
	fn := packFunction(f, name, bits)
	dst, src, stride, blocks := fn.load("dst"), fn.load("src"), fn.load("stride"), fn.load("blocks")
	stride3, row := fn.general(), fn.general()
	fn.op("LEAQ", indexed(stride, stride, 2, 0), stride3)
	a, b := vectors(64, 0, 16), vectors(64, 16, 16)
	fn.times("block", blocks, 1, func() {
		fn.op("MOVQ", src, row)
		for i, v := range a {
			m := step(row, stride, i%4, 0)
			if i%4 == 3 {
				m = indexed(row, stride3, 1, 0)
			}
			fn.op("VMOVUPS", m, v)
			m.disp += panelAhead
			fn.op("PREFETCHT1", m)
			if i%4 == 3 && i < 15 {
				fn.op("LEAQ", indexed(row, stride, 4, 0), row)
			}
		}
		fn.comment("transpose: pairs, fours, then the quarters of the vectors")
		for i := 0; i < 16; i += 2 {
			fn.op("VUNPCKLPS", a[i+1], a[i], b[i])
			fn.op("VUNPCKHPS", a[i+1], a[i], b[i+1])
		}
		for i := 0; i < 16; i += 4 {
			fn.op("VUNPCKLPD", b[i+2], b[i], a[i])
			fn.op("VUNPCKHPD", b[i+2], b[i], a[i+1])
			fn.op("VUNPCKLPD", b[i+3], b[i+1], a[i+2])
			fn.op("VUNPCKHPD", b[i+3], b[i+1], a[i+3])
		}
		for i := range 4 {
			fn.op("VSHUFF32X4", 0x88, a[i+4], a[i], b[i])
			fn.op("VSHUFF32X4", 0xdd, a[i+4], a[i], b[i+4])
			fn.op("VSHUFF32X4", 0x88, a[i+12], a[i+8], b[i+8])
			fn.op("VSHUFF32X4", 0xdd, a[i+12], a[i+8], b[i+12])
		}
		for i := range 4 {
			fn.op("VSHUFF32X4", 0x88, b[i+8], b[i], a[i])
			fn.op("VSHUFF32X4", 0xdd, b[i+8], b[i], a[i+8])
			fn.op("VSHUFF32X4", 0x88, b[i+12], b[i+4], a[i+4])
			fn.op("VSHUFF32X4", 0xdd, b[i+12], b[i+4], a[i+12])
		}
		if !bits {
			for i, v := range a {
				fn.op("VMOVUPS", v, at(dst, 64*i))
			}
			fn.op("ADDQ", 64, src)
			fn.op("ADDQ", 1024, dst)
			return
		}
		fn.comment("the lower and the upper half of each word")
		high := b[15]
		fn.op("VPTERNLOGD", 255, high, high, high)
		fn.op("VPSLLD", 16, high, high)
		for i, v := range a {
			low := b[i%8]
			fn.op("VPSLLD", 16, v, low)
			fn.op("VPANDD", high, v, v)
			fn.op("VMOVUPS", low, at(dst, 128*i))
			fn.op("VMOVUPS", v, at(dst, 128*i+64))
		}
		fn.op("ADDQ", 64, src)
		fn.op("ADDQ", 2048, dst)
	})
	fn.ret()
}

// packAVX2 does the same with blocks of 8 x 8 words, two of them down and two across.
func packAVX2(f *file, name string, bits bool) {
	fn := packFunction(f, name, bits)
	dst, src, stride, blocks := fn.load("dst"), fn.load("src"), fn.load("stride"), fn.load("blocks")
	stride3, row := fn.general(), fn.general()
	fn.op("LEAQ", indexed(stride, stride, 2, 0), stride3)
	a, b := vectors(32, 0, 8), vectors(32, 8, 8)
	fn.times("block", blocks, 1, func() {
		for across := range 2 {
			fn.op("MOVQ", src, row)
			for down := range 2 {
				for i, v := range a {
					m := step(row, stride, i%4, 32*across)
					if i%4 == 3 {
						m = indexed(row, stride3, 1, 32*across)
					}
					fn.op("VMOVUPS", m, v)
					if across == 0 {
						m.disp += panelAhead
						fn.op("PREFETCHT1", m)
					}
					if i%4 == 3 && !(down == 1 && i == 7) {
						fn.op("LEAQ", indexed(row, stride, 4, 0), row)
					}
				}
				fn.comment("transpose: pairs, fours, then the halves of the vectors")
				for i := 0; i < 8; i += 2 {
					fn.op("VUNPCKLPS", a[i+1], a[i], b[i])
					fn.op("VUNPCKHPS", a[i+1], a[i], b[i+1])
				}
				for i := 0; i < 8; i += 4 {
					fn.op("VUNPCKLPD", b[i+2], b[i], a[i])
					fn.op("VUNPCKHPD", b[i+2], b[i], a[i+1])
					fn.op("VUNPCKLPD", b[i+3], b[i+1], a[i+2])
					fn.op("VUNPCKHPD", b[i+3], b[i+1], a[i+3])
				}
				for i := range 4 {
					fn.op("VPERM2F128", 0x20, a[i+4], a[i], b[i])
					fn.op("VPERM2F128", 0x31, a[i+4], a[i], b[i+4])
				}
				for i, v := range b {
					if !bits {
						fn.op("VMOVUPS", v, at(dst, 64*(8*across+i)+32*down))
						continue
					}
					low := a[i]
					fn.op("VPSLLD", 16, v, low)
					fn.op("VPSRLD", 16, v, v)
					fn.op("VPSLLD", 16, v, v)
					fn.op("VMOVUPS", low, at(dst, 128*(8*across+i)+32*down))
					fn.op("VMOVUPS", v, at(dst, 128*(8*across+i)+64+32*down))
				}
			}
		}
		fn.op("ADDQ", 64, src)
		if bits {
			fn.op("ADDQ", 2048, dst)
		} else {
			fn.op("ADDQ", 1024, dst)
		}
	})
	fn.ret()
}
