package main

import "fmt"

// neonTiles makes the products of float32 for NEON: six rows with one panel or three
// with two take 24 of the 32 vector registers for sums.
func neonTiles() *file {
	f := &file{name: "tile", arch: "arm64"}
	table := "// tilesNEON are the tiles by panels and rows.\nfunc tilesNEON() (t tileTable) {\n"
	for _, kind := range []struct{ panels, rows int }{{1, 6}, {2, 3}, {4, 1}} {
		table += fmt.Sprintf("\tt[%d] = []func(*tile){nil", kind.panels)
		for rows := 1; rows <= kind.rows; rows++ {
			name := fmt.Sprintf("tile%dx%d", rows, kind.panels*panelColumns)
			f.neonFunction(name, "(t *tile)", fmt.Sprintf("computes %d rows and %d panels.", rows, kind.panels), func(a *neon) {
				neonTile(a, rows, kind.panels)
			})
			table += ", " + name + "NEON"
		}
		table += "}\n"
	}
	f.code = append(f.code, table+"\treturn t\n}\n")
	return f
}

// neonTile makes one function. Its sums stay in registers through all taps and all k.
// Four numbers of each row of x are loaded at once, and each multiplies with a vector
// of weights as an element of its own.
func neonTile(a *neon, rows, panels int) {
	const perPanel = panelColumns / 4
	width := panels * perPanel // vectors of a row
	sums, x := a.vs(rows*width), a.vs(rows)
	w := a.vs(min(32-len(sums)-rows, 8) &^ 1)

	t := a.load("t")
	// eachSum loads or stores the sums in pairs.
	eachSum := func(move func(m string, pair string)) {
		at, stride := a.field(t, "tile", "sums"), a.field(t, "tile", "sumsRow")
		for r := range rows {
			for v := 0; v < width; v += 2 {
				s := sums[r*width+v:]
				move(behind(at, 16*v), fmt.Sprintf("(%v, %v)", s[0], s[1]))
			}
			if r < rows-1 {
				a.op("ADD", stride, at)
			}
		}
		a.free(at, stride)
	}
	resume := a.r()
	a.op("MOVBU", fmt.Sprintf("tile_resume(%v)", t), resume)
	a.zero(sums...)
	a.op("CBZ", resume, label("start"))
	a.free(resume)
	eachSum(func(m, pair string) { a.op("FLDPQ", m, pair) })
	a.mark("start")

	// rowsOf makes the addresses of rows that are stride apart.
	rowsOf := func(first, stride string, n int) []armGeneral {
		at := []armGeneral{a.field(t, "tile", first)}
		if n > 1 {
			step := a.field(t, "tile", stride)
			for len(at) < n {
				r := a.r()
				a.op("ADD", step, at[len(at)-1], r)
				at = append(at, r)
			}
			a.free(step)
		}
		return at
	}
	xRows, wPanels := rowsOf("x", "xRow", rows), rowsOf("w", "wPanel", panels)

	// one adds the products of one k, whose number of x is the element of that index.
	one := func(element int) {
		next := 0
		for v := 0; v < width; v += 2 {
			pair := w[next : next+2]
			next = (next + 2) % len(w)
			a.op("FLDPQ", behind(wPanels[v/perPanel], 64*element+16*(v%perPanel)), fmt.Sprintf("(%v, %v)", pair[0], pair[1]))
			for i, weights := range pair {
				for r := range rows {
					a.fmlaElement(sums[r*width+v+i], weights, x[r], element)
				}
			}
		}
	}
	// advance goes on by n numbers of x.
	advance := func(n int) {
		for _, r := range xRows {
			a.op("ADD", 4*n, r)
		}
		for _, r := range wPanels {
			a.op("ADD", 64*n, r)
		}
	}
	xNext, wNext := a.field(t, "tile", "xNext"), a.field(t, "tile", "wNext")
	taps, k := a.field(t, "tile", "taps"), a.r()
	a.mark("tap")
	a.op("MOVD", fmt.Sprintf("tile_k(%v)", t), k)
	a.op("SUBS", 4, k)
	a.op("BLT", label("rest"))
	a.op("PCALIGN", 16)
	a.mark("four")
	for r, v := range x {
		a.op("FMOVQ", behind(xRows[r], 0), v)
	}
	for element := range 4 {
		one(element)
	}
	advance(4)
	a.op("SUBS", 4, k)
	a.op("BGE", label("four"))
	a.mark("rest")
	a.op("ADDS", 4, k)
	a.op("BEQ", label("next"))
	a.mark("single")
	for r, v := range x {
		a.op("FMOVS", behind(xRows[r], 0), v)
	}
	one(0)
	advance(1)
	a.op("SUBS", 1, k)
	a.op("BNE", label("single"))
	a.mark("next")
	for _, r := range xRows {
		a.op("ADD", xNext, r)
	}
	for _, r := range wPanels {
		a.op("ADD", wNext, r)
	}
	a.op("SUBS", 1, taps)
	a.op("BNE", label("tap"))
	a.free(xNext, wNext, taps, k)

	a.comment("results")
	eachSum(func(m, pair string) { a.op("FSTPQ", pair, m) })
}
