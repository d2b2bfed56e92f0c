package main

// peaksBF16 makes loops of what bounds the products of bfloat16: reading memory, and
// the multiplication of tiles.
func peaksBF16() *file {
	f := &file{name: "bf16", arch: "amd64", folder: "internal/peak"}

	read := f.function("readRows", "(p *byte, row, groups int)",
		"readRows reads groups of 8 rows, which follow each other, side by side. A row is a multiple of 128 bytes.")
	p, row, groups := read.load("p"), read.load("row"), read.load("groups")
	row3, row5, row7, left := read.general(), read.general(), read.general(), read.general()
	read.op("LEAQ", indexed(row, row, 2, 0), row3)
	read.op("LEAQ", indexed(row, row, 4, 0), row5)
	read.op("LEAQ", indexed(row3, row, 4, 0), row7)
	sums := vectors(64, 0, 8)
	read.times("group", groups, 1, func() {
		read.op("MOVQ", row, left)
		read.times("line", left, 128, func() {
			for i, v := range sums {
				m := []memory{
					at(p, 0), indexed(p, row, 1, 0), indexed(p, row, 2, 0), indexed(p, row3, 1, 0),
					indexed(p, row, 4, 0), indexed(p, row5, 1, 0), indexed(p, row3, 2, 0), indexed(p, row7, 1, 0),
				}[i]
				read.op("VPXORQ", m, v, v)
				m.disp += 64
				read.op("VPXORQ", m, v, v)
			}
			read.op("ADDQ", 128, p)
		})
		read.op("ADDQ", row7, p)
	})
	read.ret()

	tiles := f.function("multiplyTiles", "(shapes *[64]byte, turns int)",
		"multiplyTiles multiplies four tiles a turn that do not wait for each other.")
	shapes, turns := tiles.load("shapes"), tiles.load("turns")
	tiles.ldtilecfg(at(shapes, 0))
	for t := range tile(6) {
		tiles.tilezero(t)
	}
	tiles.times("turn", turns, 1, func() {
		for t := range tile(4) {
			tiles.tdpbf16ps(t, 4, 5)
		}
	})
	tiles.tilerelease()
	tiles.op("RET")
	return f
}
