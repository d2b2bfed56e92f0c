package main

// elements makes the element-wise operations, each in two forms: one that stores
// float32, and one, with BF16 in its name, that rounds every store to bfloat16.
func elements(arch string) *file {
	f := &file{name: "elements", arch: arch}

	f.stores("silu", "(y, x []float32)", "is rounding.silu.", func(l *lanes, r rounder) {
		y, x := l.load("y_base"), l.load("x_base")
		c := newSiLU(l)
		l.each("y_len", func() {
			a := l.get(x)
			v := c.silu(l, a)
			l.drop(a)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("swiGLU", "(y, gate, up []float32)", "is rounding.swiGLU.", func(l *lanes, r rounder) {
		y, gate, up := l.load("y_base"), l.load("gate_base"), l.load("up_base")
		c := newSiLU(l)
		l.each("y_len", func() {
			a := l.get(gate)
			v := c.silu(l, a)
			l.drop(a)
			r.round(l, v)
			l.multiply(v, up)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("tanh", "(y, x []float32)", "is rounding.tanh.", func(l *lanes, r rounder) {
		y, x := l.load("y_base"), l.load("x_base")
		c := newTanh(l)
		l.each("y_len", func() {
			v := l.get(x)
			c.tanh(l, v)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("snake", "(y, x, alpha, inverse []float32) (done int)",
		"is rounding.snake, up to an argument of the sine that is too large for it or no number: done tells how far it came.", snake)

	f.stores("add", "(y, a, b []float32)", "is rounding.add.", func(l *lanes, r rounder) {
		y, a, b := l.load("y_base"), l.load("a_base"), l.load("b_base")
		l.each("y_len", func() {
			v, w := l.get(a), l.get(b)
			l.op("VADDPS", w, v, v)
			l.drop(w)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("scale", "(y, x []float32, s float32)", "is rounding.scale.", func(l *lanes, r rounder) {
		y, x, s := l.load("y_base"), l.load("x_base"), l.parameter("s")
		l.each("y_len", func() {
			v := l.get(x)
			l.op("VMULPS", s, v, v)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("blend", "(x, a, b []float32, s, t float32)", "is rounding.blend.", func(l *lanes, r rounder) {
		x, a, b := l.load("x_base"), l.load("a_base"), l.load("b_base")
		s, t := l.parameter("s"), l.parameter("t")
		l.each("x_len", func() {
			v, w := l.get(a), l.get(b)
			l.op("VMULPS", s, v, v)
			r.round(l, v)
			l.op("VMULPS", t, w, w)
			r.round(l, w)
			l.op("VADDPS", w, v, v)
			l.drop(w)
			r.round(l, v)
			l.put(v, x)
		})
	})

	f.stores("step", "(x, v []float32, dt float32)", "is rounding.step.", func(l *lanes, r rounder) {
		x, v, dt := l.load("x_base"), l.load("v_base"), l.parameter("dt")
		l.each("x_len", func() {
			w := l.get(v)
			addScaled(l, r, x, w, dt)
		})
	})

	f.stores("guidedStep", "(x, vc, vu []float32, guidance, dt float32)", "is rounding.guidedStep.", func(l *lanes, r rounder) {
		x, vc, vu := l.load("x_base"), l.load("vc_base"), l.load("vu_base")
		guidance, dt := l.parameter("guidance"), l.parameter("dt")
		l.each("x_len", func() {
			v, u := l.get(vc), l.get(vu)
			l.op("VSUBPS", u, v, v)
			r.round(l, v)
			l.op("VMULPS", guidance, v, v)
			r.round(l, v)
			l.op("VADDPS", u, v, v)
			r.round(l, v)
			l.drop(u)
			addScaled(l, r, x, v, dt)
		})
	})

	f.stores("turn", "(first, second, cos, sin []float32)", "is rounding.turn.", func(l *lanes, r rounder) {
		first, second := l.load("first_base"), l.load("second_base")
		cos, sin := l.load("cos_base"), l.load("sin_base")
		l.each("first_len", func() {
			a, b, c, s := l.get(first), l.get(second), l.get(cos), l.get(sin)
			turned, other := l.vector(), l.vector()
			l.op("VMULPS", c, a, turned)
			r.round(l, turned)
			l.op("VMULPS", s, b, other)
			r.round(l, other)
			l.op("VSUBPS", other, turned, turned)
			r.round(l, turned)
			l.put(turned, first)
			l.op("VMULPS", c, b, b)
			r.round(l, b)
			l.op("VMULPS", s, a, a)
			r.round(l, a)
			l.op("VADDPS", a, b, b)
			r.round(l, b)
			l.put(b, second)
			l.drop(a, c, s, other)
		})
	})
	f.stores("rmsScale", "(y, x, w []float32, factor float32)", "is rounding.rmsScale.", func(l *lanes, r rounder) {
		y, x, w, factor := l.load("y_base"), l.load("x_base"), l.load("w_base"), l.parameter("factor")
		l.each("y_len", func() {
			v := l.get(x)
			l.op("VMULPS", factor, v, v)
			r.round(l, v)
			l.multiply(v, w)
			r.round(l, v)
			l.put(v, y)
		})
	})

	f.stores("layerScale", "(y, x, w, b []float32, mean, factor float32)", "is rounding.layerScale.", func(l *lanes, r rounder) {
		y, x, w, b := l.load("y_base"), l.load("x_base"), l.load("w_base"), l.load("b_base")
		mean, factor := l.parameter("mean"), l.parameter("factor")
		l.each("y_len", func() {
			v, shift := l.get(x), l.get(b)
			l.op("VSUBPS", mean, v, v)
			l.op("VMULPS", factor, v, v)
			l.multiply(v, w)
			l.op("VADDPS", shift, v, v)
			l.drop(shift)
			r.round(l, v)
			l.put(v, y)
		})
	})
	return f
}

// stores adds a function in all forms.
func (f *file) stores(name, signature, doc string, write func(l *lanes, r rounder)) {
	for _, form := range []struct {
		name string
		on   bool
	}{{"", false}, {"BF16", true}} {
		f.perLevel(name+form.name, signature, doc, func(l *lanes) { write(l, newRounder(l, form.on)) })
	}
}

// multiply multiplies v by the current lanes of an array.
func (l *lanes) multiply(v vector, base general) {
	w := l.get(base)
	l.op("VMULPS", w, v, v)
	l.drop(w)
}

// addScaled stores x + r(dt*v) over x and drops v.
func addScaled(l *lanes, r rounder, x general, v, dt vector) {
	l.op("VMULPS", dt, v, v)
	r.round(l, v)
	w := l.get(x)
	l.op("VADDPS", w, v, v)
	l.drop(w)
	r.round(l, v)
	l.put(v, x)
}

func snake(l *lanes, r rounder) {
	y, x := l.load("y_base"), l.load("x_base")
	alpha, inverse := l.load("alpha_base"), l.load("inverse_base")
	c := newSin(l)
	magnitude, limit := l.bits(1<<31-1), l.float(1<<27)
	large := label("large")
	l.each("y_len", func() {
		v := l.get(x)
		s := l.get(alpha)
		l.op("VMULPS", v, s, s)
		r.round(l, s)
		test := l.vector()
		l.op("VANDPS", magnitude, s, test)
		if l.wide() {
			const notLess = 5
			l.op("VCMPPS", notLess, limit, test, spare)
			l.op("KORTESTW", spare, spare)
		} else {
			const notLess = 5
			l.op("VCMPPS", notLess, limit, test, test)
			l.op("VPTEST", test, test)
		}
		l.op("JNZ", large)
		l.drop(test)
		c.sin(l, s)
		r.round(l, s)
		l.op("VMULPS", s, s, s)
		r.round(l, s)
		l.multiply(s, inverse)
		r.round(l, s)
		l.op("VADDPS", s, v, v)
		l.drop(s)
		r.round(l, v)
		l.put(v, y)
	})
	n := l.general()
	l.op("MOVQ", l.argument("y_len"), n)
	l.op("MOVQ", n, l.argument("done"))
	l.op("VZEROUPPER")
	l.op("RET")
	l.mark(large)
	l.op("MOVQ", l.index, l.argument("done"))
}
