package main

// neonPacking makes the functions that turn 16 rows of a matrix into a panel.
func neonPacking() *file {
	f := &file{name: "pack", arch: "arm64"}
	f.neonFunction("packF32", "(dst, src *float32, stride, blocks int)",
		"writes a panel of 16 rows, stride bytes apart; a block is 16 numbers of each row. blocks must be positive.",
		func(a *neon) { neonPack(a, false) })
	f.neonFunction("packBF16", "(dst *float32, src *uint16, stride, blocks int)",
		"writes a panel of 16 rows of bfloat16, stride bytes apart, widened; a block is 32 numbers of each row. blocks must be positive.",
		func(a *neon) { neonPack(a, true) })
	return f
}

// neonPack transposes blocks of 4 x 4 words of 32 bits, which are numbers or pairs of
// bfloat16: four of them down and four across.
func neonPack(a *neon, bits bool) {
	dst, src, stride, blocks := a.load("dst"), a.load("src"), a.load("stride"), a.load("blocks")
	row, rows, pairs := a.r(), a.vs(4), a.vs(4)
	upper, low := a.bits(0xffff0000), a.v()
	line := 64 // bytes of dst that hold one word of each row
	if bits {
		line = 128
	}
	a.op("PCALIGN", 16)
	a.mark("block")
	a.op("MOVD", src, row)
	for down := range 4 {
		var at [4]armGeneral
		for i := range at {
			at[i] = a.r()
			a.op("MOVD", row, at[i])
			a.op("ADD", stride, row)
		}
		for across := range 4 {
			for i, v := range rows {
				a.op("FMOVQ", behind(at[i], 16*across), v)
			}
			for i := 0; i < 4; i += 2 {
				a.op("VTRN1", rows[i+1].s4(), rows[i].s4(), pairs[i].s4())
				a.op("VTRN2", rows[i+1].s4(), rows[i].s4(), pairs[i+1].s4())
			}
			for i := range 2 {
				a.op("VTRN1", pairs[i+2].d2(), pairs[i].d2(), rows[i].d2())
				a.op("VTRN2", pairs[i+2].d2(), pairs[i].d2(), rows[i+2].d2())
			}
			for i, v := range rows {
				to := (4*across+i)*line + 16*down
				if bits {
					a.op("VSHL", 16, v.s4(), low.s4())
					a.op("VAND", upper.b16(), v.b16(), v.b16())
					a.op("FMOVQ", low, behind(dst, to))
					to += 64
				}
				a.op("FMOVQ", v, behind(dst, to))
			}
		}
		for _, r := range at {
			a.free(r)
		}
	}
	a.op("ADD", 64, src)
	a.op("ADD", 16*line, dst)
	a.op("SUBS", 1, blocks)
	a.op("BNE", label("block"))
}
