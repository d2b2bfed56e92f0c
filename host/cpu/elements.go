package cpu

// elements are the inner loops of the element-wise operations at one level, for stores
// of one type. The methods of rounding with the same names say what they compute and are
// the portable ones. The slices of a call all have the length of the first, which may
// be any of the others but not overlap them otherwise.
type elements struct {
	silu, tanh func(y, x []float32)
	swiGLU     func(y, gate, up []float32)
	snake      func(y, x, alpha, inverse []float32)
	add        func(y, a, b []float32)
	scale      func(y, x []float32, s float32)
	blend      func(x, a, b []float32, s, t float32)
	step       func(x, v []float32, dt float32)
	guidedStep func(x, vc, vu []float32, guidance, dt float32)
	turn       func(first, second, cos, sin []float32)
	rmsScale   func(y, x, w []float32, factor float32)
	layerScale func(y, x, w, b []float32, mean, factor float32)
	round      func(x []float32)
}

// elements returns the loops that store with the rounding.
func (k *kernels) elements(r rounding) *elements {
	if r {
		return &k.bf16
	}
	return &k.f32
}

func (r rounding) elements() elements {
	return elements{
		silu: r.silu, tanh: r.tanh, swiGLU: r.swiGLU, snake: r.snake,
		add: r.add, scale: r.scale, blend: r.blend, step: r.step, guidedStep: r.guidedStep,
		turn: r.turn, rmsScale: r.rmsScale, layerScale: r.layerScale, round: r.slice,
	}
}

// silu: y = r(x / (1 + exp(-x))).
func (r rounding) silu(y, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = r.of(sigmoidLinear(v))
	}
}

// tanh: y = r(tanh(x)).
func (r rounding) tanh(y, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = r.of(tanh(v))
	}
}

// swiGLU: y = r(r(silu(gate)) * up).
func (r rounding) swiGLU(y, gate, up []float32) {
	y, up = y[:len(gate)], up[:len(gate)]
	for i, v := range gate {
		y[i] = r.of(float32(r.of(sigmoidLinear(v)) * up[i]))
	}
}

// snake: y = r(x + r(inverse * r(s*s))), s = r(sin(r(alpha*x))).
func (r rounding) snake(y, x, alpha, inverse []float32) {
	y, alpha, inverse = y[:len(x)], alpha[:len(x)], inverse[:len(x)]
	for i, v := range x {
		s := r.of(sin(r.of(float32(alpha[i] * v))))
		y[i] = r.of(v + r.of(float32(inverse[i]*r.of(float32(s*s)))))
	}
}

// add: y = r(a + b).
func (r rounding) add(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = r.of(a[i] + b[i])
	}
}

// scale: y = r(x * s).
func (r rounding) scale(y, x []float32, s float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = r.of(float32(v * s))
	}
}

// blend: x = r(r(s*a) + r(t*b)).
func (r rounding) blend(x, a, b []float32, s, t float32) {
	a, b = a[:len(x)], b[:len(x)]
	for i := range x {
		x[i] = r.of(r.of(float32(s*a[i])) + r.of(float32(t*b[i])))
	}
}

// step: x = r(x + r(dt * v)).
func (r rounding) step(x, v []float32, dt float32) {
	v = v[:len(x)]
	for i, w := range x {
		x[i] = r.of(w + r.of(float32(dt*v[i])))
	}
}

// guidedStep is step with v = r(vu + r(guidance * r(vc - vu))).
func (r rounding) guidedStep(x, vc, vu []float32, guidance, dt float32) {
	vc, vu = vc[:len(x)], vu[:len(x)]
	for i, u := range vu {
		v := r.of(u + r.of(float32(guidance*r.of(vc[i]-u))))
		x[i] = r.of(x[i] + r.of(float32(dt*v)))
	}
}

// turn rotates pairs: with a and b of first and second,
//
//	a' = r(r(a*cos) + r(-b*sin)), b' = r(r(b*cos) + r(a*sin))
func (r rounding) turn(first, second, cos, sin []float32) {
	second, cos, sin = second[:len(first)], cos[:len(first)], sin[:len(first)]
	for i, a := range first {
		b, c, s := second[i], cos[i], sin[i]
		first[i] = r.of(r.of(float32(a*c)) + r.of(float32(-b*s)))
		second[i] = r.of(r.of(float32(b*c)) + r.of(float32(a*s)))
	}
}

// rmsScale: y = r(r(x * factor) * w).
func (r rounding) rmsScale(y, x, w []float32, factor float32) {
	y, w = y[:len(x)], w[:len(x)]
	for i, v := range x {
		y[i] = r.of(float32(r.of(float32(v*factor)) * w[i]))
	}
}

// layerScale: y = r((x - mean) * factor * w + b).
func (r rounding) layerScale(y, x, w, b []float32, mean, factor float32) {
	y, w, b = y[:len(x)], w[:len(x)], b[:len(x)]
	for i, v := range x {
		y[i] = r.of(float32(float32((v-mean)*factor)*w[i]) + b[i])
	}
}
