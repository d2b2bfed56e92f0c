package main

import "fmt"

// dots makes the products of bfloat16 on vectors: x and W both in pairs, W in panels
// of 16 rows.
func dots() *file {
	f := &file{name: "dot", arch: "amd64"}
	for _, c := range []struct {
		rows  int
		ahead int // bytes of a panel to fetch ahead: more where W comes from memory
		wide  int // panels at once: from memory four streams are fastest, with many rows tall tiles
	}{{2, 2048, 4}, {4, 1024, 4}, {8, 1024, 3}, {14, 512, 2}} {
		dot(f, c.rows, 1, c.ahead)
		dot(f, c.rows, c.wide, c.ahead)
	}
	return f
}

// dot makes the product of some rows and panels.
func dot(f *file, rows, panels, ahead int) {
	name := fmt.Sprintf("dot%dx%d", rows, 16*panels)
	fn := f.function(name, "(p *dotProduct)", fmt.Sprintf("%s computes p for %d rows of x and %d of W.", name, rows, 16*panels))
	p := fn.load("p")
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", field(p, "dotProduct", name), r)
		return r
	}
	x, w, wPanel, pairs := get("x"), get("w"), get("wPanel"), get("pairs")
	wPanel3 := fn.general()
	fn.op("LEAQ", indexed(wPanel, wPanel, 2, 0), wPanel3)
	sums := vectors(64, 0, rows*panels)
	weights := vectors(64, len(sums), panels)
	numbers := vectors(64, len(sums)+panels, 2)
	fn.clear(sums...)
	panel := func(i, disp int) memory {
		if i == 3 {
			return indexed(w, wPanel3, 1, disp)
		}
		return step(w, wPanel, i, disp)
	}
	const unroll = 4
	fn.times("pairs", pairs, unroll, func() {
		for u := range unroll {
			for i, v := range weights {
				fn.op("VMOVDQU32", panel(i, 64*u), v)
			}
			for i := range weights {
				fn.op("PREFETCHT0", panel(i, 64*u+ahead))
			}
			if line := 4 * rows * u / 64; u == 0 || line != 4*rows*(u-1)/64 {
				fn.op("PREFETCHT0", at(x, 768+64*line))
			}
			for r := range rows {
				fn.op("VPBROADCASTD", at(x, 4*(rows*u+r)), numbers[r%2])
				for i, v := range weights {
					fn.vdpbf16ps(sums[r*panels+i], numbers[r%2], v)
				}
			}
		}
		fn.op("ADDQ", 64*unroll, w)
		fn.op("ADDQ", 4*rows*unroll, x)
	})
	result := get("sums")
	for i, v := range sums {
		fn.op("VMOVUPS", v, at(result, 64*i))
	}
	fn.ret()
}
