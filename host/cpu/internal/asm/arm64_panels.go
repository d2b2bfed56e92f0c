package main

import "fmt"

// What goes by panels has its own form for NEON, whose vectors are a quarter of a line of
// a panel.

const neonBytes = 16

// loadQ and storeQ move 16 bytes.
func (fn *function) loadQ(base general, disp int, v vector) {
	fn.armVectorMove("FMOVQ", at(base, disp), v)
}

func (fn *function) storeQ(v vector, base general, disp int) {
	fn.armVectorMove("FMOVQ", v, at(base, disp))
}

// neonVectors are count registers from first on.
func neonVectors(first, count int) []vector {
	if first+count > 32 {
		panic(fmt.Sprintf("no vector registers %d to %d", first, first+count-1))
	}
	vs := make([]vector, count)
	for i := range vs {
		vs[i] = vector{first + i, neonBytes}
	}
	return vs
}

// widenNEON makes the conversion of bfloat16 to float32.
func widenNEON() *file {
	f := &file{name: "widen", arch: "arm64"}
	fn := f.function("widenNEON", "(dst *float32, src *uint16, blocks int)",
		"widenNEON converts blocks of 32 numbers; blocks must be positive.")
	dst, src, blocks := fn.load("dst"), fn.load("src"), fn.load("blocks")
	fn.times("block", blocks, 1, func() {
		for i, v := range neonVectors(0, 4) {
			high := vector{v.n + 4, neonBytes}
			fn.loadQ(src, 16*i, v)
			fn.word2(shll2, "SHLL2.4S $16,", high, v)
			fn.word2(shll4S, "SHLL.4S $16,", v, v)
			fn.storeQ(v, dst, 32*i)
			fn.storeQ(high, dst, 32*i+16)
		}
		fn.op("ADDQ", 64, src)
		fn.op("ADDQ", 128, dst)
	})
	fn.ret()
	return f
}

// packNEON makes the functions that turn 16 rows of a matrix into a panel.
func packNEON() *file {
	f := &file{name: "pack", arch: "arm64"}
	packRowsNEON(f, "packF32NEON", false)
	packRowsNEON(f, "packBF16NEON", true)
	return f
}

// packRowsNEON transposes blocks of 4 x 4 words of 32 bits, which are numbers or pairs of
// bfloat16, four of them down and four across.
func packRowsNEON(f *file, name string, bits bool) {
	fn := packFunction(f, name, bits)
	dst, src, stride, blocks := fn.load("dst"), fn.load("src"), fn.load("stride"), fn.load("blocks")
	row := [4]general{fn.general(), fn.general(), fn.general(), fn.general()}
	a, b, mask := neonVectors(0, 4), neonVectors(4, 4), vector{8, neonBytes}
	if bits {
		fn.op("MOVQ", immediate(0xffff0000), row[0])
		fn.op("VPBROADCASTD", row[0], mask)
	}
	fn.times("block", blocks, 1, func() {
		fn.op("MOVQ", src, row[0])
		for down := range 4 {
			if down > 0 {
				fn.op("LEAQ", indexed(row[3], stride, 1, 0), row[0])
			}
			for i := range row[1:] {
				fn.op("LEAQ", indexed(row[i], stride, 1, 0), row[i+1])
			}
			for _, r := range row {
				fn.op("PREFETCHT0", at(r, panelAhead))
			}
			for across := range 4 {
				for i, v := range a {
					fn.loadQ(row[i], 16*across, v)
				}
				fn.word(zip1of4, "ZIP1.4S", b[0], a[0], a[1])
				fn.word(zip2of4, "ZIP2.4S", b[1], a[0], a[1])
				fn.word(zip1of4, "ZIP1.4S", b[2], a[2], a[3])
				fn.word(zip2of4, "ZIP2.4S", b[3], a[2], a[3])
				fn.word(zip1of2, "ZIP1.2D", a[0], b[0], b[2])
				fn.word(zip2of2, "ZIP2.2D", a[1], b[0], b[2])
				fn.word(zip1of2, "ZIP1.2D", a[2], b[1], b[3])
				fn.word(zip2of2, "ZIP2.2D", a[3], b[1], b[3])
				for i, v := range a {
					line := 4*across + i
					if !bits {
						fn.storeQ(v, dst, 64*line+16*down)
						continue
					}
					fn.op("VPSLLD", 16, v, b[i])
					fn.op("VPAND", mask, v, v)
					fn.storeQ(b[i], dst, 128*line+16*down)
					fn.storeQ(v, dst, 128*line+64+16*down)
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

// neonRows is how many rows a tile of so many panels has room for.
var neonRows = map[int]int{1: 6, 2: 3, 4: 1}

// tilesNEON makes the products of float32.
func tilesNEON() *file {
	f := &file{name: "tile", arch: "arm64"}
	table := "// tilesNEON are the tiles by panels and rows.\nfunc tilesNEON() (t tileTable) {\n"
	for _, panels := range []int{1, 2, 4} {
		table += fmt.Sprintf("\tt[%d] = []func(*tile){nil", panels)
		for rows := 1; rows <= neonRows[panels]; rows++ {
			name := fmt.Sprintf("tile%dx%dNEON", rows, panels*panelColumns)
			tileNEON(f, name, rows, panels)
			table += ", " + name
		}
		table += "}\n"
	}
	f.code = append(f.code, table+"\treturn t\n}\n")
	return f
}

// tileNEON makes one function. Its sums stay in registers through all taps and all k.
func tileNEON(f *file, name string, rows, panels int) {
	const unroll, perPanel = 4, panelColumns * 4 / neonBytes
	fn := f.function(name, "(t *tile)", fmt.Sprintf("%s computes %d rows and %d panels.", name, rows, panels))
	width := panels * perPanel // vectors of a row

	// Registers: the sums, four numbers of each row of x, and two vectors of weights.
	sums := neonVectors(0, rows*width)
	x := neonVectors(len(sums), rows)
	w := neonVectors(len(sums)+rows, 2)

	t := fn.load("t")
	get := func(name string, r general) general {
		fn.op("MOVQ", field(t, "tile", name), r)
		return r
	}
	taps, k := fn.general(), fn.general()
	fn.comment("sums")
	start, begin := label("start"), label("begin")
	fn.op("CMPB", field(t, "tile", "resume"), 0)
	fn.op("JNE", begin)
	for _, v := range sums {
		fn.op("VPXOR", v, v, v)
	}
	fn.op("JMP", start)
	fn.mark(begin)
	// each visits the memory of all sums.
	each := func(visit func(v vector, base general, disp int)) {
		base, stride := get("sums", k), get("sumsRow", taps)
		for r := range rows {
			for v := range width {
				visit(sums[r*width+v], base, v*neonBytes)
			}
			if r < rows-1 {
				fn.op("ADDQ", stride, base)
			}
		}
	}
	each(func(v vector, base general, disp int) { fn.loadQ(base, disp, v) })
	fn.mark(start)

	fn.comment("addresses of the rows of x and of the panels")
	addresses := func(first, step string, n int) []general {
		bases := []general{get(first, fn.general())}
		if n > 1 {
			get(step, taps)
		}
		for i := 1; i < n; i++ {
			bases = append(bases, fn.general())
			fn.op("LEAQ", indexed(bases[i-1], taps, 1, 0), bases[i])
		}
		return bases
	}
	row, panel := addresses("x", "xRow", rows), addresses("w", "wPanel", panels)

	// one adds the products of number u of those in x.
	one := func(u int) {
		element := uint32(u&1)<<21 | uint32(u>>1)<<11
		for v := range width {
			fn.loadQ(panel[v/perPanel], u*panelColumns*4+v%perPanel*neonBytes, w[v%2])
			if v%perPanel == 0 {
				fn.op("PREFETCHT0", at(panel[v/perPanel], u*panelColumns*4+512))
			}
			for r := range rows {
				fn.word(fmlaByElement|element, fmt.Sprintf("FMLA.4S [%d]", u), sums[r*width+v], w[v%2], x[r])
			}
		}
	}
	advance := func(n int) {
		for _, b := range row {
			fn.op("ADDQ", 4*n, b)
		}
		for _, b := range panel {
			fn.op("ADDQ", n*panelColumns*4, b)
		}
	}

	rest, next := label("rest"), label("next")
	get("taps", taps)
	fn.mark("tap")
	get("k", k)
	fn.op("SUBQ", unroll, k)
	fn.op("JLT", rest)
	fn.mark("four")
	for r, v := range x {
		fn.loadQ(row[r], 0, v)
	}
	for u := range unroll {
		one(u)
	}
	advance(unroll)
	fn.op("SUBQ", unroll, k)
	fn.op("JGE", label("four"))
	fn.mark(rest)
	fn.op("ADDQ", unroll, k)
	fn.op("JZ", next)
	fn.mark("single")
	for r, v := range x {
		fn.armVectorMove("FMOVS", at(row[r], 0), v)
	}
	one(0)
	advance(1)
	fn.op("SUBQ", 1, k)
	fn.op("JNZ", label("single"))
	fn.mark(next)
	for _, b := range row {
		fn.op("ADDQ", field(t, "tile", "xNext"), b)
	}
	for _, b := range panel {
		fn.op("ADDQ", field(t, "tile", "wNext"), b)
	}
	fn.op("SUBQ", 1, taps)
	fn.op("JNZ", label("tap"))

	fn.comment("results")
	each(func(v vector, base general, disp int) { fn.storeQ(v, base, disp) })
	fn.ret()
}
