package main

// softmax makes the step of a running softmax.
func softmax(arch string) *file {
	f := &file{name: "softmax", arch: arch}
	f.perLevel("softmax", "(p []float32, scale float32, state *softmaxState) (shrink float32)", "is softmaxRow.", func(l *lanes) {
		p, scale, state := l.load("p_base"), l.parameter("scale"), l.load("state")
		c := newExp(l, 127, exp6)
		least := l.vector()
		l.op("VMOVUPS", l.float(-88.03), least) // there the power is 0
		most := l.vector()
		l.op("VBROADCASTSS", field(state, "softmaxState", "top"), most)
		before := l.copy(most)

		l.op("MOVQ", l.argument("p_len"), cx)
		l.eachOf("max", func() {
			v := l.get(p)
			l.op("VMULPS", scale, v, v)
			l.raise(most, v)
		})
		l.fold(most, "MAX")
		l.op("VMOVSS", most.as(16), field(state, "softmaxState", "top"))
		l.op("VBROADCASTSS", most.as(16), most)

		total := l.vector()
		l.clear(total)
		l.op("MOVQ", l.argument("p_len"), cx)
		l.eachOf("exp", func() {
			v := l.get(p)
			l.op("VFMSUB213PS", most, scale, v)
			l.op("VMAXPS", v, least, v) // of a NaN, the NaN
			v = c.exp(l, v)
			l.keep(v)
			l.op("VADDPS", v, total, total)
			l.put(v, p)
		})
		l.fold(total, "ADD")

		l.op("VSUBPS", most, before, before)
		l.op("VMAXPS", before, least, before)
		shrink := c.exp(l, before)
		l.op("VMOVSS", shrink.as(16), l.argument("shrink"))
		l.op("VFMADD132SS", field(state, "softmaxState", "total"), total.as(16), shrink.as(16))
		l.op("VMOVSS", shrink.as(16), field(state, "softmaxState", "total"))
	})
	return f
}
