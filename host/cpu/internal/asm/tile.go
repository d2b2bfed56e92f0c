package main

import "fmt"

// panelColumns is the width of a panel of weights; see panels.go in package cpu.
const panelColumns = 16

// tileKind is how a level computes tiles: with which vectors, and how many rows a tile
// of so many panels has room for.
type tileKind struct {
	level string
	bytes int // of a vector
	count int // of vector registers
	rows  map[int]int
}

func tileKinds() []tileKind {
	return []tileKind{
		{"AVX2", 32, 16, map[int]int{1: 6, 2: 3, 4: 1}},
		{"AVX512", 64, 32, map[int]int{1: 14, 2: 14, 4: 6}},
	}
}

// tiles makes the products of float32: for each number of rows and panels one
// function, and a table of them for each level.
func tiles() *file {
	f := &file{name: "tile", arch: "amd64"}
	for _, kind := range tileKinds() {
		table := fmt.Sprintf("// tiles%s are the tiles by panels and rows.\nfunc tiles%s() (t tileTable) {\n", kind.level, kind.level)
		for _, panels := range []int{1, 2, 4} {
			table += fmt.Sprintf("\tt[%d] = []func(*tile){nil", panels)
			for rows := 1; rows <= kind.rows[panels]; rows++ {
				name := fmt.Sprintf("tile%dx%d%s", rows, panels*panelColumns, kind.level)
				kind.tile(f, name, rows, panels)
				table += ", " + name
			}
			table += "}\n"
		}
		f.code = append(f.code, table+"\treturn t\n}\n")
	}
	return f
}

// tile makes one function. Its sums stay in registers through all taps and all k.
func (kind tileKind) tile(f *file, name string, rows, panels int) {
	const unroll = 4
	fn := f.function(name, "(t *tile)", fmt.Sprintf("%s computes %d rows and %d panels.", name, rows, panels))
	perPanel := panelColumns * 4 / kind.bytes
	width := panels * perPanel // vectors of a row

	// Registers: the sums, then the weights of one k and two numbers of x, or where
	// that is too much the numbers of x of all rows and one vector of weights.
	sums := vectors(kind.bytes, 0, rows*width)
	manyWeights := len(sums)+width+2 <= kind.count
	var w, x []vector
	if manyWeights {
		w = vectors(kind.bytes, len(sums), width)
		x = vectors(kind.bytes, len(sums)+width, 2)
	} else {
		w = vectors(kind.bytes, len(sums), 1)
		x = vectors(kind.bytes, len(sums)+1, rows)
	}

	t := fn.load("t")
	fn.comment("sums")
	start, begin := label("start"), label("begin")
	fn.op("CMPB", field(t, "tile", "resume"), 0)
	fn.op("JNE", begin)
	fn.clear(sums...)
	fn.op("JMP", start)
	fn.mark(begin)
	from, stride := fn.general(), fn.general()
	fn.op("MOVQ", field(t, "tile", "sums"), from)
	fn.op("MOVQ", field(t, "tile", "sumsRow"), stride)
	for r := range rows {
		for v := range width {
			fn.op("VMOVUPS", at(from, v*kind.bytes), sums[r*width+v])
		}
		if r < rows-1 {
			fn.op("ADDQ", stride, from)
		}
	}
	fn.release(from, stride)
	fn.mark(start)

	fn.comment("addresses of x (every fourth row) and of the panels")
	xRow := fn.general()
	xRow3 := xRow
	fn.op("MOVQ", field(t, "tile", "xRow"), xRow)
	if rows > 3 {
		xRow3 = fn.general()
		fn.op("LEAQ", indexed(xRow, xRow, 2, 0), xRow3)
	}
	var base []general
	for r := 0; r < rows; r += 4 {
		b := fn.general()
		if r == 0 {
			fn.op("MOVQ", field(t, "tile", "x"), b)
		} else {
			fn.op("LEAQ", indexed(base[len(base)-1], xRow, 4, 0), b)
		}
		base = append(base, b)
	}
	number := func(row, k int) memory {
		if row%4 == 3 {
			return indexed(base[row/4], xRow3, 1, 4*k)
		}
		return step(base[row/4], xRow, row%4, 4*k)
	}
	panel := fn.general()
	fn.op("MOVQ", field(t, "tile", "w"), panel)
	var wPanel, wPanel3 general
	if panels > 1 {
		wPanel = fn.general()
		fn.op("MOVQ", field(t, "tile", "wPanel"), wPanel)
	}
	if panels > 3 {
		wPanel3 = fn.general()
		fn.op("LEAQ", indexed(wPanel, wPanel, 2, 0), wPanel3)
	}
	weight := func(v, k int) memory {
		disp := k*panelColumns*4 + v%perPanel*kind.bytes
		if v/perPanel == 3 {
			return indexed(panel, wPanel3, 1, disp)
		}
		return step(panel, wPanel, v/perPanel, disp)
	}

	// one adds the products of one k.
	one := func(k int) {
		if manyWeights {
			for v := range width {
				fn.op("VMOVUPS", weight(v, k), w[v])
			}
			kind.prefetch(fn, panels, weight, k)
			for r := range rows {
				fn.op("VBROADCASTSS", number(r, k), x[r%2])
				for v := range width {
					fn.op("VFMADD231PS", w[v], x[r%2], sums[r*width+v])
				}
			}
			return
		}
		for r := range rows {
			fn.op("VBROADCASTSS", number(r, k), x[r])
		}
		kind.prefetch(fn, panels, weight, k)
		for v := range width {
			fn.op("VMOVUPS", weight(v, k), w[0])
			for r := range rows {
				fn.op("VFMADD231PS", w[0], x[r], sums[r*width+v])
			}
		}
	}
	advance := func(n int) {
		for _, b := range base {
			fn.op("ADDQ", 4*n, b)
		}
		fn.op("ADDQ", n*panelColumns*4, panel)
	}

	taps, k := fn.general(), fn.general()
	rest, next := label("rest"), label("next")
	fn.op("MOVQ", field(t, "tile", "taps"), taps)
	fn.mark("tap")
	fn.op("MOVQ", field(t, "tile", "k"), k)
	fn.op("SUBQ", unroll, k)
	fn.op("JLT", rest)
	fn.op("PCALIGN", 64)
	fn.mark("four")
	for u := range unroll {
		one(u)
	}
	advance(unroll)
	fn.op("SUBQ", unroll, k)
	fn.op("JGE", "four")
	fn.mark(rest)
	fn.op("ADDQ", unroll, k)
	fn.op("JZ", next)
	fn.mark("single")
	one(0)
	advance(1)
	fn.op("SUBQ", 1, k)
	fn.op("JNZ", "single")
	fn.mark(next)
	for _, b := range base {
		fn.op("ADDQ", field(t, "tile", "xNext"), b)
	}
	fn.op("ADDQ", field(t, "tile", "wNext"), panel)
	fn.op("SUBQ", 1, taps)
	fn.op("JNZ", "tap")

	fn.comment("results")
	fn.op("MOVQ", field(t, "tile", "sums"), k)
	fn.op("MOVQ", field(t, "tile", "sumsRow"), taps)
	for r := range rows {
		for v := range width {
			fn.op("VMOVUPS", sums[r*width+v], at(k, v*kind.bytes))
		}
		if r < rows-1 {
			fn.op("ADDQ", taps, k)
		}
	}
	fn.ret()
}

// step is the memory at base + n*stride + disp for n up to 2.
func step(base, stride general, n, disp int) memory {
	if n == 0 {
		return at(base, disp)
	}
	return indexed(base, stride, n, disp)
}

// prefetch asks for weights that come later: each panel is a stream of its own. One
// panel alone is within what the hardware foresees.
func (kind tileKind) prefetch(fn *function, panels int, weight func(v, k int) memory, k int) {
	ahead := map[int]int{1: 1024, 2: 512, 4: 1024}[panels]
	for p := range panels {
		m := weight(p*panelColumns*4/kind.bytes, k)
		m.disp += ahead
		fn.op("PREFETCHT0", m)
	}
}
