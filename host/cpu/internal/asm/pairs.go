package main

// pairing makes what prepares the operands of the products of bfloat16.
func pairing() *file {
	f := &file{name: "pairs", arch: "amd64"}
	packPairs(f, "packPairs", "float32")
	packPairs(f, "packPairsBF16", "uint16")
	packTerms(f)
	packStrip(f)
	return f
}

// transpose16 transposes the 16 x 16 words of 32 bits in Z0 to Z15. It uses the other
// vectors.
func (fn *function) transpose16() {
	a, b := vectors(64, 0, 16), vectors(64, 16, 16)
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
}

// nextRow adds stride to place, and sets stride to zero once no rows are left: behind
// the last row comes the last row again.
func (fn *function) nextRow(place, stride, left, zero general) {
	fn.op("DECQ", left)
	fn.op("CMOVQEQ", zero, stride)
	fn.op("ADDQ", stride, place)
}

// lowBits turns a count of up to 32 into as many ones.
func (fn *function) lowBits(count general) {
	ones := fn.general()
	fn.op("MOVQ", -1, ones)
	fn.op("BZHIQ", count, ones, count)
	fn.release(ones)
}

// packPairs makes one panel of pairs, from numbers of a type.
func packPairs(f *file, name, source string) {
	fn := f.function(name, "(dst *uint16, src *"+source+", stride, rows, steps, tail, width int)", name+
		` writes the pairs of 1 to 16 rows of 32*(steps-1)+tail bfloat16 numbers: for
		each two neighbours in a row, those of all rows side by side, width bytes from one two to the next.
		Rows of src are stride bytes apart. Numbers that the last step lacks are 0. All writes are 64 bytes
		long: behind the last row something else is overwritten, at the end 64-width bytes.`)
	size := map[string]int{"float32": 4, "uint16": 2}[source]
	a, x := vectors(64, 0, 16), vectors(64, 16, 2)
	fn.pairSteps(16, 32*size, func(i int, low, high memory, lowMask, highMask mask) {
		if source == "uint16" {
			fn.op("VMOVDQU16.Z", low, lowMask, a[i])
			low.disp += packAhead
			fn.op("PREFETCHT0", low)
			return
		}
		fn.op("VMOVUPS.Z", low, lowMask, x[0])
		fn.op("VMOVUPS.Z", high, highMask, x[1])
		fn.vcvtne2ps2bf16(a[i], x[1], x[0])
	})
}

// packTerms makes one panel of pairs of the terms of float32 numbers.
func packTerms(f *file) {
	fn := f.function("packTerms", "(dst *uint16, src *float32, stride, rows, steps, tail, width int)",
		`packTerms is packPairs for 1 to 5 rows of float32 numbers, each of which becomes three rows: bfloat16 numbers
		whose sum it is, the rounded one first.`)
	a, x, wide := vectors(64, 0, 16), vectors(64, 16, 2), vectors(64, 18, 2)
	fn.pairSteps(5, 128, func(i int, low, high memory, lowMask, highMask mask) {
		fn.op("VMOVUPS.Z", low, lowMask, x[0])
		fn.op("VMOVUPS.Z", high, highMask, x[1])
		for t, v := range a[3*i : 3*i+3] {
			fn.vcvtne2ps2bf16(v, x[1], x[0])
			if t == 2 {
				break
			}
			fn.comment("what is left")
			fn.op("VEXTRACTI64X4", 1, v, wide[1].as(32))
			for j, w := range wide {
				half := v.as(32)
				if j == 1 {
					half = w.as(32)
				}
				fn.op("VPMOVZXWD", half, w)
				fn.op("VPSLLD", 16, w, w)
				fn.op("VSUBPS", w, x[j], x[j])
			}
		}
	})
}

// pairSteps is what the packing of pairs has in common: load puts step after step of
// each of some rows into Z0 to Z15, its two halves of 16 numbers are at low and high,
// in as many lanes as the masks say. bytes is how long a step is.
func (fn *function) pairSteps(rows, bytes int, load func(i int, low, high memory, lowMask, highMask mask)) {
	fn.frame = rows * 8
	place, stride, left, zero := fn.general(), fn.load("stride"), fn.load("rows"), fn.general()
	fn.op("XORQ", place, place)
	fn.op("XORQ", zero, zero)
	for i := range rows {
		fn.op("MOVQ", place, local(8*i))
		if i < rows-1 {
			fn.nextRow(place, stride, left, zero)
		}
	}
	fn.release(place, stride, left, zero)
	dst, src, steps, width := fn.load("dst"), fn.load("src"), fn.load("steps"), fn.load("width")
	tail, row := fn.load("tail"), fn.general()
	const low, high mask = 1, 2
	fn.lowBits(tail)
	fn.op("KXNORD", low, low, low)
	fn.op("KXNORD", high, high, high)
	fn.times("step", steps, 1, func() {
		whole := label("whole")
		fn.op("CMPQ", steps, 1)
		fn.op("JNE", whole)
		fn.op("KMOVD", tail, low)
		fn.op("SHRQ", 16, tail)
		fn.op("KMOVD", tail, high)
		fn.mark(whole)
		for i := range rows {
			fn.op("MOVQ", local(8*i), row)
			load(i, indexed(src, row, 1, 0), indexed(src, row, 1, 64), low, high)
		}
		fn.transpose16()
		for _, v := range vectors(64, 0, 16) {
			fn.op("VMOVDQU32", v, at(dst, 0))
			fn.op("ADDQ", width, dst)
		}
		fn.op("ADDQ", bytes, src)
	})
	fn.ret()
}

// packStrip makes the copy of rows of W as tiles.
func packStrip(f *file) {
	fn := f.function("packStrip", "(dst, src *uint16, stride, rows, steps, tail int)",
		`packStrip copies 1 to 32 rows of 32*(steps-1)+tail numbers, stride bytes apart: for each step
		32 numbers of 32 rows below each other, two tiles. Numbers that the last step lacks are 0, rows that are missing are
		the last again.`)
	src, stride, left, zero := fn.load("src"), fn.load("stride"), fn.load("rows"), fn.general()
	dst, tail, groups, steps := fn.load("dst"), fn.load("tail"), fn.general(), fn.general()
	var row [4]general
	for i := range row {
		row[i] = fn.general()
	}
	const now, last mask = 1, 2
	fn.lowBits(tail)
	fn.op("KMOVD", tail, last)
	fn.op("XORQ", zero, zero)
	fn.op("MOVQ", 32/len(row), groups)
	z := vectors(64, 0, len(row))
	out := tail // no longer needed
	fn.times("group", groups, 1, func() {
		for _, r := range row {
			fn.op("MOVQ", src, r)
			fn.nextRow(src, stride, left, zero)
		}
		fn.op("MOVQ", dst, out)
		fn.op("ADDQ", len(row)*64, dst)
		fn.op("KXNORD", now, now, now)
		fn.op("MOVQ", fn.argument("steps"), steps)
		fn.times("step", steps, 1, func() {
			whole := label("whole")
			fn.op("CMPQ", steps, 1)
			fn.op("JNE", whole)
			fn.op("KMOVD", last, now)
			fn.mark(whole)
			for i, r := range row {
				fn.op("VMOVDQU16.Z", at(r, 0), now, z[i])
				fn.op("ADDQ", 64, r)
			}
			for i, v := range z {
				fn.op("VMOVDQU32", v, at(out, 64*i))
			}
			fn.op("ADDQ", 2048, out)
		})
	})
	fn.ret()
}
