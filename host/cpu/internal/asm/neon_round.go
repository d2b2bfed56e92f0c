package main

// neonRounding makes the conversions between bfloat16 and float32.
func neonRounding() *file {
	f := &file{name: "round", arch: "arm64"}
	f.neonFunction("widen", "(dst *float32, src *uint16, blocks int)", "converts blocks of 32 numbers; blocks must be positive.", func(a *neon) {
		dst, src, blocks := a.load("dst"), a.load("src"), a.load("blocks")
		from, to := a.vs(4), a.vs(8)
		a.op("PCALIGN", 16)
		a.mark("block")
		a.op("VLD1.P", behind(src, 64), list(from, armVector.h8))
		for i, v := range from {
			a.op("VUSHLL", 0, v.h4(), to[2*i].s4())
			a.op("VUSHLL2", 0, v.h8(), to[2*i+1].s4())
		}
		for _, v := range to {
			a.op("VSHL", 16, v.s4(), v.s4())
		}
		for i := 0; i < 8; i += 4 {
			a.op("VST1.P", list(to[i:i+4], armVector.s4), behind(dst, 64))
		}
		a.op("SUBS", 1, blocks)
		a.op("BNE", label("block"))
	})
	f.neonFunction("round", "(x []float32)", "is rounding.slice for bfloat16.", func(a *neon) {
		x, count, r := a.load("x_base"), a.load("x_len"), newNEONRounder(a, true)
		a.each("x", count, []armGeneral{x}, func() {
			v := a.get(x)
			r.round(a, v)
			a.put(v, x)
		})
	})
	f.neonFunction("narrow", "(dst []uint16, src []float32) (done int)", "is narrow for the first numbers: done tells how many.", func(a *neon) {
		dst, src, count := a.load("dst_base"), a.load("src_base"), a.load("dst_len")
		done, r, v := a.r(), newNEONRounder(a, true), a.vs(2)
		end := label("end")
		a.op("AND", "$~7", count, done)
		a.op("MOVD", done, a.argument("done"))
		a.op("CBZ", done, end)
		a.mark("eight")
		a.op("VLD1.P", behind(src, 32), list(v, armVector.s4))
		r.round(a, v[0])
		r.round(a, v[1])
		a.op("VUZP2", v[1].h8(), v[0].h8(), v[0].h8())
		a.op("VST1.P", list(v[:1], armVector.h8), behind(dst, 16))
		a.op("SUBS", 8, done)
		a.op("BNE", label("eight"))
		a.mark(end)
	})
	return f
}
