package main

import "fmt"

// lineBytes is the size of a line of a panel; see kvcache.go in package cpu.
const lineBytes = 64

// cached makes the two products of attention over a cache of float32 or of bfloat16, for
// one row and for four.
func cached(arch string) *file {
	f := &file{name: "cached", arch: arch}
	for _, bits := range []bool{false, true} {
		for _, rows := range []int{1, 4} {
			form := fmt.Sprintf("%dF32", rows)
			if bits {
				form = fmt.Sprintf("%dBF16", rows)
			}
			f.perLevel("scores"+form, "(t *cachedTile)", "is cachedTile.scores.", func(l *lanes) {
				c := newCached(l, bits, rows)
				c.scores()
			})
			f.perLevel("mix"+form, "(t *cachedTile)", "is cachedTile.mix.", func(l *lanes) {
				c := newCached(l, bits, rows)
				c.mix()
			})
		}
	}
	return f
}

// cachedProduct is one of the functions on its way: sums of rows of numbers, x, times
// lines of panels. Panels go side by side, as many as there are registers for; the
// lines of those that come next are prefetched, one for each that is read.
type cachedProduct struct {
	*lanes
	bits bool
	rows int

	sums   [][]vector // by row
	upper  any        // bfloat16: the mask of the second number of a pair
	t, tmp general
	x, x2  general // rows 0 and 2
	stride general // from one row of x to the next
	line   general // bytes of the panels that are done
	panel  []general
	next   []general // the panels to prefetch
}

func newCached(l *lanes, bits bool, rows int) *cachedProduct {
	c := &cachedProduct{lanes: l, bits: bits, rows: rows}
	c.release(cx) // nothing here goes by lanes
	if bits {
		c.upper = l.bits(0xffff0000)
	}
	panels := 1
	switch {
	case l.wide():
		panels = 4
	case l.neon() && rows == 1:
		panels = 2
	}
	c.t, c.tmp, c.x, c.line = l.load("t"), l.general(), l.general(), l.general()
	if rows > 1 {
		c.x2, c.stride = l.general(), l.general()
		l.op("MOVQ", c.field("xRow"), c.stride)
	}
	for range panels {
		c.panel, c.next = append(c.panel, l.general()), append(c.next, l.general())
	}
	for range rows {
		c.sums = append(c.sums, l.vectors(panels*c.perPanel()))
	}
	return c
}

func (c *cachedProduct) field(name string) structField { return field(c.t, "cachedTile", name) }

// perPanel is how many vectors the sums of a panel take.
func (c *cachedProduct) perPanel() int { return lineBytes / c.bytes }

// memory is the field that holds the cache, and the size of its numbers.
func (c *cachedProduct) memory() (name string, size int) {
	if c.bits {
		return "bits", 2
	}
	return "floats", 4
}

// from sets x to the first number of its rows.
func (c *cachedProduct) from() {
	c.op("MOVQ", c.field("x"), c.x)
	if c.rows > 1 {
		c.op("LEAQ", indexed(c.x, c.stride, 2, 0), c.x2)
	}
}

// number is the memory of number k of a row of x.
func (c *cachedProduct) number(row, k int) memory {
	base := c.x
	if row > 1 {
		base = c.x2
	}
	if row%2 == 1 {
		return indexed(base, c.stride, 1, 4*k)
	}
	return at(base, 4*k)
}

// forward goes n numbers on in x.
func (c *cachedProduct) forward(n int) {
	c.op("ADDQ", 4*n, c.x)
	if c.rows > 1 {
		c.op("ADDQ", 4*n, c.x2)
	}
}

// products adds, for k numbers of x given in tmp, the lines of the panels from the
// first on. It names its labels after name.
func (c *cachedProduct) products(name string) {
	loop, rest, done := label(name+"Line"), label(name+"Rest"), label(name+"Done")
	c.op("XORL", c.line, c.line)
	if c.bits {
		c.op("SUBQ", 2, c.tmp)
		c.op("JLT", rest)
	}
	c.op("PCALIGN", 32)
	c.mark(loop)
	for _, n := range c.next {
		c.op("PREFETCHT0", indexed(n, c.line, 1, 0))
	}
	if !c.bits {
		c.multiply(0, func(m memory, v vector) { c.op("VMOVUPS", m, v) })
		c.forward(1)
		c.op("ADDQ", lineBytes, c.line)
		c.op("SUBQ", 1, c.tmp)
		c.op("JNZ", loop)
		return
	}
	first := func(m memory, v vector) {
		if c.wide() {
			c.op("VPSLLD", 16, m, v)
		} else {
			c.op("VMOVDQU", m, v)
			c.op("VPSLLD", 16, v, v)
		}
	}
	c.multiply(0, first)
	c.multiply(1, func(m memory, v vector) {
		if c.wide() {
			c.op("VPANDD", m, c.upper, v)
		} else {
			c.op("VMOVDQU", m, v)
			c.op("VPAND", c.upper, v, v)
		}
	})
	c.forward(2)
	c.op("ADDQ", lineBytes, c.line)
	c.op("SUBQ", 2, c.tmp)
	c.op("JGE", loop)
	c.mark(rest)
	c.op("ADDQ", 2, c.tmp)
	c.op("JZ", done)
	c.comment("The first numbers of pairs whose second does not count.")
	c.multiply(0, first)
	c.forward(1)
	c.mark(done)
}

// multiply adds number k of the rows of x times the current line of each panel, as load
// reads it.
func (c *cachedProduct) multiply(k int, load func(m memory, v vector)) {
	var w []vector
	for _, p := range c.panel {
		for i := range c.perPanel() {
			v := c.vector()
			load(indexed(p, c.line, 1, i*c.bytes), v)
			w = append(w, v)
		}
	}
	for r, sums := range c.sums {
		x := c.vector()
		c.op("VBROADCASTSS", c.number(r, k), x)
		for i, v := range w {
			c.op("VFMADD231PS", v, x, sums[i])
		}
		c.drop(x)
	}
	c.drop(w...)
}

// eachSum applies an instruction to all sums and their memory, which begins at base; the
// rows lie sumsRow apart.
func (c *cachedProduct) eachSum(base, step general, f func(m memory, v vector)) {
	c.op("MOVQ", c.field("sumsRow"), step)
	for r, sums := range c.sums {
		for i, v := range sums {
			f(at(base, i*c.bytes), v)
		}
		if r < len(c.sums)-1 {
			c.op("ADDQ", step, base)
		}
	}
}

func (c *cachedProduct) scores() {
	name, size := c.memory()
	c.op("MOVQ", 0, c.field("done"))
	c.mark("group")
	c.op("MOVQ", c.field("offsets"), c.tmp)
	c.op("MOVQ", c.field("done"), c.line)
	c.op("LEAQ", indexed(c.tmp, c.line, 8, 0), c.tmp)
	c.op("MOVQ", c.field(name), c.line)
	for i, p := range append(append([]general{}, c.panel...), c.next...) {
		c.op("MOVQ", at(c.tmp, 8*i), p)
		c.op("LEAQ", indexed(c.line, p, size, 0), p)
	}
	c.from()
	for _, sums := range c.sums {
		c.clear(sums...)
	}
	c.op("MOVQ", c.field("k"), c.tmp)
	c.products("")
	c.op("MOVQ", c.field("done"), c.line)
	c.op("MOVQ", c.line, c.tmp)
	c.op("SHLQ", 6, c.tmp)
	c.op("ADDQ", c.field("sums"), c.tmp)
	c.eachSum(c.tmp, c.x, func(m memory, v vector) { c.op("VMOVUPS", v, m) })
	c.op("ADDQ", len(c.panel), c.line)
	c.op("MOVQ", c.line, c.field("done"))
	c.op("CMPQ", c.line, c.field("count"))
	c.op("JLT", label("group"))
}

func (c *cachedProduct) mix() {
	name, size := c.memory()
	c.op("MOVQ", 0, c.field("group"))
	c.mark("group")
	sums := func(f func(m memory, v vector)) {
		c.op("MOVQ", c.field("group"), c.tmp)
		c.op("SHLQ", 6, c.tmp)
		c.op("ADDQ", c.field("sums"), c.tmp)
		c.eachSum(c.tmp, c.line, f)
	}
	sums(func(m memory, v vector) { c.op("VMOVUPS", m, v) })
	c.from()
	c.op("MOVQ", 0, c.field("done"))

	c.mark("block")
	c.op("MOVQ", c.field("offsets"), c.tmp)
	c.op("MOVQ", c.field("done"), c.line)
	c.op("LEAQ", indexed(c.tmp, c.line, 8, 0), c.tmp)
	c.op("INCQ", c.line)
	c.op("MOVQ", c.line, c.field("done"))
	for i, panels := range [][]general{c.panel, c.next} {
		c.op("MOVQ", c.field("group"), panels[0])
		c.op("IMULQ", c.field("panelSize"), panels[0])
		c.op("ADDQ", at(c.tmp, 8*i), panels[0])
		c.op("MOVQ", c.field(name), c.line)
		c.op("LEAQ", indexed(c.line, panels[0], size, 0), panels[0])
		if len(panels) > 1 {
			c.op("MOVQ", c.field("panelSize"), c.line)
			for j := range panels[1:] {
				c.op("LEAQ", indexed(panels[j], c.line, size, 0), panels[j+1])
			}
		}
	}
	last, count := label("last"), label("count")
	c.op("MOVQ", c.field("done"), c.line)
	c.op("CMPQ", c.line, c.field("count"))
	c.op("JEQ", last)
	c.op("MOVQ", c.field("k"), c.tmp)
	c.op("JMP", count)
	c.mark(last)
	c.op("MOVQ", c.field("last"), c.tmp)
	c.mark(count)
	c.products("")
	c.op("MOVQ", c.field("done"), c.line)
	c.op("CMPQ", c.line, c.field("count"))
	c.op("JLT", label("block"))

	sums(func(m memory, v vector) { c.op("VMOVUPS", v, m) })
	c.op("MOVQ", c.field("group"), c.line)
	c.op("ADDQ", len(c.panel), c.line)
	c.op("MOVQ", c.line, c.field("group"))
	c.op("CMPQ", c.line, c.field("panels"))
	c.op("JLT", label("group"))
}
