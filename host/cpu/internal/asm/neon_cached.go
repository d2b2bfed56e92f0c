package main

import "fmt"

// neonCaching makes the two products of attention over a cache of float32 or of
// bfloat16, for one row and for four.
func neonCaching() *file {
	f := &file{name: "cached", arch: "arm64"}
	for _, bits := range []bool{false, true} {
		for _, rows := range []int{1, 4} {
			form := fmt.Sprintf("%dF32", rows)
			if bits {
				form = fmt.Sprintf("%dBF16", rows)
			}
			f.neonFunction("scores"+form, "(t *cachedTile)", "is cachedTile.scores.", func(a *neon) {
				c := newNEONCached(a, bits, rows)
				c.scores()
			})
			f.neonFunction("mix"+form, "(t *cachedTile)", "is cachedTile.mix.", func(a *neon) {
				c := newNEONCached(a, bits, rows)
				c.mix()
			})
		}
	}
	return f
}

// neonCached is one of the functions on its way: sums of rows of numbers, x, times the
// lines of one panel.
type neonCached struct {
	*neon
	bits bool

	sums  [][]armVector // by row
	x     []armVector   // by row
	w     []armVector   // a line, or half of the numbers of one
	line  []armVector   // bfloat16: a line of pairs
	upper armVector     // bfloat16: the mask of the second number of a pair

	t, k, panel armGeneral
	xAt         []armGeneral
}

func newNEONCached(a *neon, bits bool, rows int) *neonCached {
	c := &neonCached{neon: a, bits: bits, t: a.load("t"), k: a.r(), panel: a.r(), x: a.vs(rows), w: a.vs(4)}
	for range rows {
		c.sums = append(c.sums, a.vs(4))
		c.xAt = append(c.xAt, a.r())
	}
	if bits {
		c.upper, c.line = a.bits(0xffff0000), a.vs(4)
	}
	return c
}

// of hands out a register with a field of t.
func (c *neonCached) of(name string) armGeneral { return c.field(c.t, "cachedTile", name) }

// from sets the addresses of x to the first numbers of its rows.
func (c *neonCached) from() {
	c.op("MOVD", fmt.Sprintf("cachedTile_x(%v)", c.t), c.xAt[0])
	if len(c.xAt) > 1 {
		step := c.of("xRow")
		for i := range c.xAt[1:] {
			c.op("ADD", step, c.xAt[i], c.xAt[i+1])
		}
		c.free(step)
	}
}

// eachSum loads or stores the sums of the panel of that number.
func (c *neonCached) eachSum(number armGeneral, move func(m, pair string)) {
	at, step := c.of("sums"), c.of("sumsRow")
	c.op("ADD", fmt.Sprintf("%v<<6", number), at)
	for r, sums := range c.sums {
		for v := 0; v < 4; v += 2 {
			move(behind(at, 16*v), fmt.Sprintf("(%v, %v)", sums[v], sums[v+1]))
		}
		if r < len(c.sums)-1 {
			c.op("ADD", step, at)
		}
	}
	c.free(at, step)
}

func (c *neonCached) storePair(m, pair string) { c.op("FSTPQ", pair, m) }
func (c *neonCached) loadPair(m, pair string)  { c.op("FLDPQ", m, pair) }

// address turns an index of numbers into the address of a panel.
func (c *neonCached) address(index armGeneral) {
	memory, shift := "floats", 2
	if c.bits {
		memory, shift = "bits", 1
	}
	base := c.of(memory)
	c.op("ADD", fmt.Sprintf("%v<<%d", index, shift), base, c.panel)
	c.free(base)
}

// multiply adds the products of the line in w with the numbers of x of that index.
func (c *neonCached) multiply(index int) {
	for r, sums := range c.sums {
		for i, w := range c.w {
			c.fmlaElement(sums[i], w, c.x[r], index)
		}
	}
}

// first and second set w to those numbers of the pairs in line.
func (c *neonCached) first() {
	for i, v := range c.line {
		c.op("VSHL", 16, v.s4(), c.w[i].s4())
	}
}

func (c *neonCached) second() {
	for i, v := range c.line {
		c.op("VAND", c.upper.b16(), v.b16(), c.w[i].b16())
	}
}

// load reads a line of the panel.
func (c *neonCached) loadLine(to []armVector) {
	c.loadPair(behind(c.panel, 0), fmt.Sprintf("(%v, %v)", to[0], to[1]))
	c.loadPair(behind(c.panel, 32), fmt.Sprintf("(%v, %v)", to[2], to[3]))
	c.op("ADD", lineBytes, c.panel)
}

// numbers loads the next number of each row, or with FMOVD two of them.
func (c *neonCached) numbers(load string, bytes int) {
	for r, v := range c.x {
		c.op(load+".P", behind(c.xAt[r], bytes), v)
	}
}

// products adds k numbers of x times the lines of the panel.
func (c *neonCached) products() {
	loop, rest, done := label("line"), label("rest"), label("done")
	if !c.bits {
		c.op("PCALIGN", 16)
		c.mark(loop)
		c.loadLine(c.w)
		c.numbers("FMOVS", 4)
		c.multiply(0)
		c.op("SUBS", 1, c.k)
		c.op("BNE", loop)
		return
	}
	c.op("SUBS", 2, c.k)
	c.op("BLT", rest)
	c.op("PCALIGN", 16)
	c.mark(loop)
	c.loadLine(c.line)
	c.numbers("FMOVD", 8)
	c.first()
	c.multiply(0)
	c.second()
	c.multiply(1)
	c.op("SUBS", 2, c.k)
	c.op("BGE", loop)
	c.mark(rest)
	c.op("ADDS", 2, c.k)
	c.op("BEQ", done)
	c.comment("The first numbers of pairs whose second does not count.")
	c.loadLine(c.line)
	c.numbers("FMOVS", 4)
	c.first()
	c.multiply(0)
	c.mark(done)
}

func (c *neonCached) scores() {
	offsets, count, number := c.of("offsets"), c.of("count"), c.r()
	c.op("MOVD", "ZR", number)
	c.mark("panel")
	c.op("MOVD.P", behind(offsets, 8), c.panel)
	c.address(c.panel)
	c.from()
	for _, sums := range c.sums {
		c.zero(sums...)
	}
	c.op("MOVD", fmt.Sprintf("cachedTile_k(%v)", c.t), c.k)
	c.products()
	c.eachSum(number, c.storePair)
	c.op("ADD", 1, number)
	c.op("CMP", count, number)
	c.op("BLT", label("panel"))
}

func (c *neonCached) mix() {
	panels, number, index := c.of("panels"), c.r(), c.r()
	offsets, count := c.r(), c.r()
	c.op("MOVD", "ZR", number)
	c.op("MOVD", "ZR", index)
	c.mark("panel")
	c.eachSum(number, c.loadPair)
	c.from()
	c.op("MOVD", fmt.Sprintf("cachedTile_offsets(%v)", c.t), offsets)
	c.op("MOVD", fmt.Sprintf("cachedTile_count(%v)", c.t), count)

	c.mark("block")
	c.op("MOVD.P", behind(offsets, 8), c.panel)
	c.op("ADD", index, c.panel)
	c.address(c.panel)
	c.op("MOVD", fmt.Sprintf("cachedTile_k(%v)", c.t), c.k)
	c.op("CMP", 1, count)
	c.op("BNE", label("whole"))
	c.op("MOVD", fmt.Sprintf("cachedTile_last(%v)", c.t), c.k)
	c.mark("whole")
	c.products()
	c.op("SUBS", 1, count)
	c.op("BNE", label("block"))

	c.eachSum(number, c.storePair)
	size := c.of("panelSize")
	c.op("ADD", size, index)
	c.op("ADD", 1, number)
	c.op("CMP", panels, number)
	c.op("BLT", label("panel"))
}
