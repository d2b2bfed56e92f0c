package main

import "fmt"

// amxAttention makes what attention on tiles does between its products. Sums have a
// row for each key or each number of a head, and a column for each of 32 queries: what is
// computed for a query stays in one lane.
func amxAttention() *file {
	f := &file{name: "amx_attention", arch: "amd64"}
	packColumns(f)
	softmaxColumns(f)
	storeColumns(f)
	return f
}

// packColumns makes the transposition of values, whose sums run over positions.
func packColumns(f *file) {
	fn := f.function("packColumns", "(dst *uint16, dstRow int, src *float32, srcRow, rows, columns int)",
		`packColumns writes the columns of 1 to 16 rows of numbers, as rows of 16 bfloat16 numbers
		with zeros for the rows that are missing. Columns are up to 16; rows of src and dst are so many bytes apart.`)
	l := &lanes{function: fn, file: f, bytes: 64}
	dst, dstRow, src, srcRow, rows, columns := fn.load("dst"), fn.load("dstRow"), fn.load("src"), fn.load("srcRow"), fn.load("rows"), fn.load("columns")
	values := l.vectors(16)
	fn.clear(values...)
	mask := fn.general()
	fn.op("MOVQ", columns, mask)
	fn.lowBits(mask)
	fn.op("KMOVW", mask, leftMask)
	loaded := label("loaded")
	for i, v := range values {
		fn.op("VMOVUPS.Z", at(src, 0), leftMask, v)
		if i < 15 {
			fn.op("ADDQ", srcRow, src)
			fn.op("DECQ", rows)
			fn.op("JZ", loaded)
		}
	}
	fn.mark(loaded)
	fn.transpose16()
	done := label("done")
	for i, v := range values {
		fn.op("VPSRLD", 16, v, v) // exact: the numbers are bfloat16
		fn.op("VPMOVDW", v, at(dst, 0))
		if i < 15 {
			fn.op("ADDQ", dstRow, dst)
			fn.op("DECQ", columns)
			fn.op("JZ", done)
		}
	}
	fn.mark(done)
	fn.ret()
}

// softmaxColumns makes the step of the running softmax.
func softmaxColumns(f *file) {
	fn := f.function("softmaxColumns", "(p *columnSoftmax)", "softmaxColumns computes p.")
	l := &lanes{function: fn, file: f, bytes: 64}
	p := fn.load("p")
	argument := func(name string) structField { return field(p, "columnSoftmax", name) }
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", argument(name), r)
		return r
	}
	const row = 2 * 64 // bytes of 32 queries
	scores, keys, top := get("scores"), get("keys"), get("top")
	scale := l.vector()
	fn.op("VBROADCASTSS", argument("scale"), scale)

	fn.comment("the highest scores, of the even and of the odd keys")
	most := l.vectors(4)
	for i, v := range most {
		fn.op("VMOVUPS", at(top, i%2*64), v)
	}
	before := []vector{l.copy(most[0]), l.copy(most[1])}
	at0, left := fn.general(), fn.general()
	raise := func(n int) {
		for i := range 2 * n {
			v := l.vector()
			fn.op("VMULPS", at(at0, 64*i), scale, v)
			fn.op("VMAXPS", v, most[i], most[i])
			l.drop(v)
		}
		fn.op("ADDQ", n*row, at0)
	}
	fn.op("MOVQ", scores, at0)
	fn.pairs("most", keys, left, raise)
	for i := range 2 {
		fn.op("VMAXPS", most[i+2], most[i], most[i])
		fn.op("VMOVUPS", most[i], at(top, i*64))
		l.drop(most[i+2])
	}

	fn.comment("weights: each is the sum of three bfloat16 numbers")
	c := newExp(l, 127, exp6)
	least, upper := l.vector(), l.bits(0xffff0000)
	fn.op("VMOVUPS", l.float(-88.03), least) // there the power is 0
	total := l.vectors(2)
	fn.clear(total...)
	weights, term, third, line := get("weights"), get("term"), fn.general(), fn.general()
	fn.op("LEAQ", indexed(weights, term, 2, 0), third)
	fn.op("XORL", line, line)
	exps := func(n int) {
		for h := range 2 { // halves of the queries
			var pair []vector
			for i := range n {
				v := l.vector()
				fn.op("VMOVUPS", at(at0, i*row+64*h), v)
				fn.op("VFMSUB213PS", most[h], scale, v)
				fn.op("VMAXPS", v, least, v) // of a NaN, the NaN
				v = c.exp(l, v)
				fn.op("VADDPS", v, total[h], total[h])
				pair = append(pair, v)
			}
			for i := range 3 {
				part := l.vector()
				fn.op("VPSRLD", 16, pair[0], part)
				if n == 2 {
					const orAnd = 0xf8
					fn.op("VPTERNLOGD", orAnd, upper, pair[1], part)
				}
				place := indexed(weights, line, 1, 1024*h)
				switch i {
				case 1:
					fn.op("ADDQ", term, line)
				case 2:
					place = indexed(third, line, 1, 1024*h)
				}
				fn.op("VMOVUPS", part, place)
				if i == 1 {
					fn.op("SUBQ", term, line)
				}
				for _, v := range pair {
					if i < 2 {
						fn.op("VPANDD", upper, v, part)
						fn.op("VSUBPS", part, v, v)
					}
				}
				l.drop(part)
			}
			l.drop(pair...)
		}
		fn.op("ADDQ", n*row, at0)
		fn.comment("the next line; a step has 16, for each half of the queries")
		same := label(fmt.Sprintf("same%d", n))
		fn.op("ADDQ", 64, line)
		fn.op("TESTQ", 1024-1, line)
		fn.op("JNZ", same)
		fn.op("ADDQ", 1024, line)
		fn.mark(same)
	}
	fn.op("MOVQ", scores, at0)
	fn.pairs("exp", keys, left, exps)

	fn.comment("what was summed up before shrinks")
	sum := get("total")
	for i, b := range before {
		fn.op("VSUBPS", most[i], b, b)
		fn.op("VMAXPS", b, least, b)
		before[i] = c.exp(l, b)
		fn.op("VFMADD231PS", at(sum, i*64), before[i], total[i])
		fn.op("VMOVUPS", total[i], at(sum, i*64))
	}
	const less = 1
	done := label("done")
	fn.op("VCMPPS", less, c.one, before[0], mask(1))
	fn.op("VCMPPS", less, c.one, before[1], mask(2))
	fn.op("KORTESTW", mask(1), mask(2))
	fn.op("JZ", done)
	sums, rows := get("sums"), left
	fn.op("MOVQ", argument("rows"), rows)
	fn.op("TESTQ", rows, rows)
	fn.op("JZ", done)
	fn.times("shrink", rows, 1, func() {
		for i, b := range before {
			v := l.vector()
			fn.op("VMULPS", at(sums, 64*i), b, v)
			fn.op("VMOVUPS", v, at(sums, 64*i))
			l.drop(v)
		}
		fn.op("ADDQ", row, sums)
	})
	fn.mark(done)
	fn.ret()
}

// pairs runs body for two, as often as count has room for them, and for one that is
// left. left is lost.
func (fn *function) pairs(name string, count, left general, body func(n int)) {
	single, done := label(name+"Single"), label(name+"Done")
	fn.op("MOVQ", count, left)
	fn.op("SUBQ", 2, left)
	fn.op("JLT", single)
	fn.op("PCALIGN", 32)
	fn.mark(label(name + "Pair"))
	body(2)
	fn.op("SUBQ", 2, left)
	fn.op("JGE", label(name+"Pair"))
	fn.mark(single)
	fn.op("ADDQ", 2, left)
	fn.op("JZ", done)
	body(1)
	fn.mark(done)
}

// storeColumns makes the last step.
func storeColumns(f *file) {
	fn := f.function("storeColumns", "(p *columnStore)", "storeColumns computes p.")
	l := &lanes{function: fn, file: f, bytes: 64}
	p := fn.load("p")
	argument := func(name string) structField { return field(p, "columnStore", name) }
	get := func(name string) general {
		r := fn.general()
		fn.op("MOVQ", argument(name), r)
		return r
	}
	sums, total, columns, y, yRow := get("sums"), get("total"), get("columns"), get("y"), get("yRow")
	row, rows, count := fn.general(), fn.general(), fn.general()
	fn.mark("columns")
	inverse := vector{16, 64}
	whole := vector{17, 64}
	fn.op("MOVL", immediate(0x3f800000), row)
	fn.op("VPBROADCASTD", row, whole)
	fn.op("VDIVPS", at(total, 0), whole, inverse)
	values := l.vectors(16)
	for i, v := range values {
		fn.op("VMULPS", at(sums, 128*i), inverse, v)
	}
	fn.transpose16()
	rounder := newRounder(l, true)
	fn.op("MOVQ", columns, count)
	all := label("all")
	fn.op("CMPQ", count, 16)
	fn.op("JLE", all)
	fn.op("MOVQ", 16, count)
	fn.mark(all)
	fn.lowBits(count)
	fn.op("KMOVW", count, leftMask)
	fn.op("MOVQ", y, row)
	fn.op("MOVQ", argument("rows"), rows)
	done := label("done")
	for i, v := range values {
		rounder.round(l, v)
		fn.op("VMOVUPS", v, leftMask, at(row, 0))
		if i < 15 {
			fn.op("ADDQ", yRow, row)
			fn.op("DECQ", rows)
			fn.op("JZ", done)
		}
	}
	fn.mark(done)
	fn.op("ADDQ", 64, y)
	fn.op("ADDQ", 16*128, sums)
	fn.op("SUBQ", 16, columns)
	fn.op("JG", label("columns"))
	fn.ret()
}
