package main

// amxConv makes the convolution on tiles. Here the rows of x are the left operand, as
// they follow each other in time, and W the right one; the result has a row for each
// of x.
func amxConv(f *file) {
	fn := f.function("amxConv", "(p *amxConvProduct)", "amxConv computes p.")
	p := fn.load("p")
	argument := func(name string) structField { return field(p, "amxConvProduct", name) }
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", argument(name), r)
		return r
	}
	taps := get("shapes")
	fn.ldtilecfg(at(taps, 0))
	sums, x, xRow, blocks, wStep := get("sums"), get("x"), get("xRow"), get("blocks"), get("wStep")
	row, pairs, ahead, steps, line, places := fn.general(), fn.general(), fn.general(), fn.general(), fn.general(), fn.general()
	const left, right, rows, columns tile = 0, 1, 2, 3
	const sumsRow = 2 * 64
	fn.times("block", blocks, 1, func() {
		resume, start := label("resume"), label("start")
		fn.op("MOVQ", sumsRow, line)
		fn.op("CMPB", argument("resume"), 0)
		fn.op("JNE", resume)
		fn.tilezero(left)
		fn.tilezero(right)
		fn.op("JMP", start)
		fn.mark(resume)
		fn.tileloadd(indexed(sums, line, 1, 0), left)
		fn.tileloadd(indexed(sums, line, 1, 64), right)
		fn.mark(start)
		fn.op("MOVQ", 64, line)
		fn.op("XORQ", places, places)
		fn.op("MOVQ", argument("taps"), taps)
		fn.times("tap", taps, 1, func() {
			fn.comment("this tap's rows, and three of the next block's")
			fn.op("MOVQ", places, row)
			fn.op("IMULQ", argument("xTap"), row)
			fn.op("ADDQ", x, row)
			fn.op("LEAQ", indexed(places, places, 2, 0), ahead)
			fn.op("IMULQ", xRow, ahead)
			fn.op("ADDQ", x, ahead)
			fn.op("ADDQ", argument("ahead"), ahead)
			fn.op("MOVQ", places, pairs)
			fn.op("IMULQ", argument("wTap"), pairs)
			fn.op("ADDQ", argument("w"), pairs)
			fn.op("INCQ", places)
			fn.op("MOVQ", argument("steps"), steps)
			fn.times("step", steps, 1, func() {
				fn.tileloadd(indexed(row, xRow, 1, 0), rows)
				fn.tileloadd(indexed(pairs, line, 1, 0), columns)
				fn.tdpbf16ps(left, rows, columns)
				fn.op("PREFETCHT0", at(ahead, 0))
				fn.op("PREFETCHT0", indexed(ahead, xRow, 1, 0))
				fn.op("PREFETCHT0", indexed(ahead, xRow, 2, 0))
				fn.tileloadd(indexed(pairs, line, 1, 1024), columns)
				fn.tdpbf16ps(right, rows, columns)
				fn.op("ADDQ", 64, row)
				fn.op("ADDQ", 64, ahead)
				fn.op("ADDQ", wStep, pairs)
			})
		})
		fn.op("MOVQ", sumsRow, line)
		fn.tilestored(left, indexed(sums, line, 1, 0))
		fn.tilestored(right, indexed(sums, line, 1, 64))
		fn.op("ADDQ", 16*sumsRow, sums)
		fn.op("MOVQ", xRow, row)
		fn.op("SHLQ", 4, row)
		fn.op("ADDQ", row, x)
	})
	fn.tilerelease()
	fn.op("RET")
}
