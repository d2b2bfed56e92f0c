package main

import "fmt"

// amx makes the products of bfloat16 on tiles. A tile of W, 16 rows of 32 numbers,
// meets 16 pairs of up to 16 rows of x; the result has a row for each row of W.
func amx() *file {
	f := &file{name: "amx", arch: "amd64"}
	amxFew(f, 1)
	amxFew(f, 2)
	amxStrip(f)
	finishColumns(f, "finishColumns", 1, `finishColumns finishes up to 16 rows of up to 16 columns, whose sums are
		[column][16 rows]. Only it and finishTerms know f.around.`)
	finishColumns(f, "finishTerms", 3, `finishTerms is finishColumns for up to 5 rows, each of which has three sums, of
		the terms that packTerms makes.`)
	amxConv(f)
	return f
}

// amxFew makes the product that reads W once, as it lies in memory. Its 16 streams
// come as fast as they can without being asked for earlier.
func amxFew(f *file, panels int) {
	name := fmt.Sprintf("amxFew%d", panels)
	fn := f.function(name, "(p *amxFewProduct)", fmt.Sprintf("%s computes p with %d panels of x.", name, panels))
	p := fn.load("p")
	argument := func(name string) structField { return field(p, "amxFewProduct", name) }
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", argument(name), r)
		return r
	}
	scratch := get("shapes")
	fn.ldtilecfg(at(scratch, 0))
	sums, w, wRow, width, blocks := get("sums"), get("w"), get("wRow"), get("width"), get("blocks")
	row, x, steps := fn.general(), fn.general(), fn.general()
	const rows, lastRows tile = 4, 5
	result, pairs, lastPairs := []tile{0, 1}[:panels], []tile{6, 2}[:panels], []tile{7, 3}[:panels]
	multiply := func(rows tile, pairs []tile) {
		fn.tileloadd(indexed(x, width, 1, 0), pairs[0])
		if panels == 2 {
			fn.op("MOVQ", argument("xPanel"), scratch)
			fn.op("ADDQ", x, scratch)
			fn.tileloadd(indexed(scratch, width, 1, 0), pairs[1])
		}
		fn.tileloadd(indexed(row, wRow, 1, 0), rows)
		for i, t := range result {
			fn.tdpbf16ps(t, rows, pairs[i])
		}
	}
	fn.times("block", blocks, 1, func() {
		for _, t := range result {
			fn.tilezero(t)
		}
		fn.op("MOVQ", w, row)
		fn.op("MOVQ", argument("x"), x)
		rest, store := label("rest"), label("store")
		fn.op("MOVQ", argument("steps"), steps)
		fn.op("TESTQ", steps, steps)
		fn.op("JZ", rest)
		fn.times("step", steps, 1, func() {
			multiply(rows, pairs)
			fn.op("ADDQ", 64, row)
			fn.op("MOVQ", width, scratch)
			fn.op("SHLQ", 4, scratch)
			fn.op("ADDQ", scratch, x)
		})
		fn.mark(rest)
		fn.op("CMPQ", argument("tail"), 0)
		fn.op("JEQ", store)
		multiply(lastRows, lastPairs)
		fn.mark(store)
		fn.op("MOVQ", 64, scratch)
		for _, t := range result {
			fn.tilestored(t, indexed(sums, scratch, 1, 0))
			fn.op("ADDQ", 1024, sums)
		}
		fn.op("MOVQ", wRow, scratch)
		fn.op("SHLQ", 4, scratch)
		fn.op("ADDQ", scratch, w)
	})
	fn.tilerelease()
	fn.op("RET")
}

// amxStrip makes the product of a strip of W, in tiles, with many rows of x. It uses
// four tiles only: with more, the loop is slower on a core whose other thread is busy,
// and no faster on one that is alone.
func amxStrip(f *file) {
	fn := f.function("amxStrip", "(p *amxStripProduct)", "amxStrip computes p.")
	p := fn.load("p")
	argument := func(name string) structField { return field(p, "amxStripProduct", name) }
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", argument(name), r)
		return r
	}
	line := get("shapes")
	fn.ldtilecfg(at(line, 0))
	sums, w, x, xPanel, blocks, next, nextRow := get("sums"), get("w"), get("x"), get("xPanel"), get("blocks"), get("next"), get("nextRow")
	row, pair, steps := fn.general(), fn.general(), fn.general()
	fn.op("MOVQ", 64, line)
	const upper, lower, rows, pairs tile = 0, 1, 2, 3
	fn.times("block", blocks, 1, func() {
		resume, start := label("resume"), label("start")
		fn.op("CMPB", argument("resume"), 0)
		fn.op("JNE", resume)
		fn.tilezero(upper)
		fn.tilezero(lower)
		fn.op("JMP", start)
		fn.mark(resume)
		fn.tileloadd(indexed(sums, line, 1, 0), upper)
		fn.tileloadd(indexed(sums, line, 1, 1024), lower)
		fn.mark(start)
		fn.op("MOVQ", w, row)
		fn.op("MOVQ", x, pair)
		fn.op("ADDQ", xPanel, x)
		fn.op("MOVQ", argument("steps"), steps)
		fn.times("step", steps, 1, func() {
			fn.tileloadd(indexed(pair, line, 1, 0), pairs)
			fn.tileloadd(indexed(row, line, 1, 0), rows)
			fn.tdpbf16ps(upper, rows, pairs)
			fn.tileloadd(indexed(row, line, 1, 1024), rows)
			fn.tdpbf16ps(lower, rows, pairs)
			fn.op("PREFETCHT1", at(next, 0))
			fn.op("PREFETCHT1", indexed(next, nextRow, 1, 0))
			fn.op("ADDQ", 64, next)
			fn.op("ADDQ", 2048, row)
			fn.op("ADDQ", 1024, pair)
		})
		fn.tilestored(upper, indexed(sums, line, 1, 0))
		fn.tilestored(lower, indexed(sums, line, 1, 1024))
		fn.op("ADDQ", 2048, sums)
		fn.op("MOVQ", argument("steps"), steps)
		fn.op("SHLQ", 6, steps)
		fn.op("SUBQ", steps, next)
		fn.op("LEAQ", indexed(next, nextRow, 2, 0), next)
	})
	fn.tilerelease()
	fn.op("RET")
}

// finishColumns makes the last step for the result of a tile, in which each row has as
// many sums as terms.
func finishColumns(f *file, name string, terms int, doc string) {
	fn := f.function(name, "(f *finish)", doc)
	l := &lanes{function: fn, file: f, bytes: 64}
	args := fn.load("f")
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", field(args, "finish", name), r)
		return r
	}
	values := l.vectors(16)
	sums := get("sums")
	for i, v := range values {
		fn.op("VMOVUPS", at(sums, 64*i), v)
	}
	fn.release(sums)
	fn.transpose16()
	if terms == 3 {
		var sums []vector
		for i := 0; i+3 <= len(values); i += 3 {
			first, second, third := values[i], values[i+1], values[i+2]
			fn.op("VADDPS", third, second, second) // the smaller ones first
			fn.op("VADDPS", second, first, first)
			sums = append(sums, first)
		}
		values = sums
	}
	rounder := newRounder(l, true)
	columns, start := get("columns"), label("start")
	fn.lowBits(columns)
	fn.op("KMOVW", columns, leftMask)
	fn.release(columns)
	bias := l.vector()
	fn.clear(bias)
	pointer := get("bias")
	fn.op("TESTQ", pointer, pointer)
	fn.op("JZ", start)
	fn.op("VMOVUPS.Z", at(pointer, 0), leftMask, bias)
	fn.mark(start)
	fn.release(pointer)
	y, residual, yRow, rows := get("y"), get("residual"), get("yRow"), get("rows")
	done := label("done")
	for i, v := range values {
		place := func(name string) label { return label(fmt.Sprintf("%s%d", name, i)) }
		round := func(to label) {
			fn.op("CMPB", field(args, "finish", "round"), 0)
			fn.op("JEQ", to)
			rounder.round(l, v)
		}
		fn.op("VADDPS", bias, v, v)
		round(place("rounded"))
		fn.mark(place("rounded"))
		fn.op("TESTQ", residual, residual)
		fn.op("JZ", place("store"))
		fn.op("VADDPS", at(residual, 0), v, leftMask, v)
		fn.op("ADDQ", yRow, residual)
		round(place("store"))
		fn.mark(place("store"))
		fn.op("CMPB", field(args, "finish", "around"), 0)
		fn.op("JNE", place("around"))
		fn.op("VMOVUPS", v, leftMask, at(y, 0))
		fn.op("JMP", place("next"))
		fn.mark(place("around"))
		fn.op("VMOVNTPS", v, at(y, 0))
		fn.mark(place("next"))
		if i < len(values)-1 {
			fn.op("ADDQ", yRow, y)
			fn.op("DECQ", rows)
			fn.op("JZ", done)
		}
	}
	fn.mark(done)
	fn.ret()
}
