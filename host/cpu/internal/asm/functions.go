package main

// The functions of this file leave their argument as it is and hand out a register with
// the result. Their constants are loaded once, outside the loop.
//
// e^r for |r| <= ln 2/2 is 1 + r + r^2 P(r); P was fitted for the least relative error
// of e^r (degree 6, 2^-28.2) or of e^r - 1 (degree 7, 2^-31.9).

// expConstants are what every exponential needs: with n the integer nearest x/ln 2,
// e^x = 2^n e^r, r = x - n ln 2.
type expConstants struct {
	log2e     any
	magic     any // adding it rounds to an integer in the low bits
	ln2, rest any // ln 2 in two parts
	one       any
	p         []any // of P, lowest power first
}

// newExp makes the constants. The integer in the low bits of the rounded argument is n
// plus bias: shifted to the place of the exponent it is 2^(n+bias-127), and zero
// for n = -bias.
func newExp(l *lanes, bias int, p []float64) expConstants {
	c := expConstants{
		log2e: l.float(1.4426950408889634),
		magic: l.float(3<<22 + float64(bias)),
		ln2:   l.float(0x1.62e4p-1), // 15 bits: n ln2 is exact
		rest:  l.float(0x1.7f7d1cf79abcap-20),
		one:   l.float(1),
	}
	for _, a := range p {
		c.p = append(c.p, l.float(a))
	}
	return c
}

var (
	exp6   = []float64{0.49999993431891138, 0.16666520396770755, 0.041668390831315845, 0.0083687453200474747, 0.0013814537893704382}
	expm17 = []float64{0.50000000442703614, 0.16666666369728656, 0.041666360422025782, 0.0083333894621568473, 0.0013940668883933876, 0.00019845880321248226}
)

// reduce turns x into r and hands out 2^(n+bias-127).
func (c *expConstants) reduce(l *lanes, x vector) (power vector) {
	power = l.copy(c.magic)
	l.op("VFMADD231PS", c.log2e, x, power)
	n := l.vector()
	l.op("VSUBPS", c.magic, power, n)
	l.op("VFNMADD231PS", c.ln2, n, x)
	l.op("VFNMADD231PS", c.rest, n, x)
	l.op("VPSLLD", 23, power, power)
	l.drop(n)
	return power
}

// polynomial hands out P(r).
func (c *expConstants) polynomial(l *lanes, r vector) vector {
	last := len(c.p) - 1
	p := l.copy(c.p[last])
	for i := last - 1; i >= 0; i-- {
		l.op("VFMADD213PS", c.p[i], r, p)
	}
	return p
}

// exp hands out e^x for x <= 0 and drops x; with bias 127 what would be below the
// normal numbers is 0, or all but. x must not be below -88.
func (c *expConstants) exp(l *lanes, x vector) vector {
	power := c.reduce(l, x)
	p := c.polynomial(l, x)
	l.op("VFMADD213PS", c.one, x, p)
	l.op("VFMADD213PS", c.one, x, p)
	l.op("VMULPS", power, p, p)
	l.drop(power, x)
	return p
}

// expm1 hands out e^r - 1.
func (c *expConstants) expm1(l *lanes, r vector) vector {
	p, square := c.polynomial(l, r), l.vector()
	l.op("VMULPS", r, r, square)
	l.op("VFMADD213PS", r, square, p)
	l.drop(square)
	return p
}

// siluConstants are those of silu: x/(1+e^-|x|) above 0, x e^x/(1+e^x) below. The
// exponential carries a factor 2^32 to the end, so that it loses no digits where
// the result is small but no subnormal number; and x e^r is x + x(e^r-1), which rounds
// once.
type siluConstants struct {
	expConstants
	sign, least, small any
}

func newSiLU(l *lanes) siluConstants {
	return siluConstants{
		expConstants: newExp(l, 127+32, exp6),
		sign:         l.bits(1 << 31),
		least:        l.float(-110.2), // there the power is 0
		small:        l.float(0x1p-32),
	}
}

// silu hands out x/(1+e^-x).
func (c *siluConstants) silu(l *lanes, x vector) vector {
	r := l.vector()
	l.op("VORPS", c.sign, x, r)
	l.op("VMAXPS", c.least, r, r)
	power := c.reduce(l, r)
	q := c.expm1(l, r)
	l.op("VMOVUPS", power, r)
	l.op("VFMADD231PS", q, power, r)
	below := l.copy(c.one)
	l.op("VFMADD231PS", c.small, r, below)
	y := l.copy(c.one)
	if l.wide() {
		l.op("VPMOVD2M", x, spare)
		l.op("VMOVAPS", power, spare, y)
		l.op("VMULPS", x, y, y)
		l.op("VFMADD231PS", q, y, spare, y)
		l.op("VDIVPS", below, y, y)
		l.op("VMULPS", c.small, y, spare, y)
	} else {
		zero, scale := l.vector(), l.copy(c.one)
		l.clear(zero)
		l.op("VBLENDVPS", x, power, y, y)
		l.op("VBLENDVPS", x, q, zero, q)
		l.op("VBLENDVPS", x, c.small, scale, scale)
		l.op("VMULPS", x, y, y)
		l.op("VFMADD231PS", q, y, y)
		l.op("VDIVPS", below, y, y)
		l.op("VMULPS", scale, y, y)
		l.drop(zero, scale)
	}
	l.drop(r, power, q, below)
	return y
}

// tanhConstants are those of tanh: with m = e^(-2|x|) - 1, its absolute value
// is -m/(2+m).
type tanhConstants struct {
	expConstants
	sign, magnitude, least, two any
}

func newTanh(l *lanes) tanhConstants {
	return tanhConstants{
		expConstants: newExp(l, 127, expm17),
		sign:         l.bits(1 << 31),
		magnitude:    l.bits(1<<31 - 1),
		least:        l.float(-10), // there it is 1
		two:          l.float(2),
	}
}

// tanh turns x into its hyperbolic tangent.
func (c *tanhConstants) tanh(l *lanes, x vector) {
	r := l.vector()
	l.op("VORPS", c.sign, x, r)
	least := l.copy(c.least)
	l.op("VMAXPS", r, least, r) // of a NaN, the NaN
	l.drop(least)
	l.op("VADDPS", r, r, r)
	power := c.reduce(l, r)
	m := c.expm1(l, r)
	l.op("VSUBPS", c.one, power, r)
	l.op("VFMADD213PS", r, power, m)
	l.op("VADDPS", c.two, m, r)
	l.op("VDIVPS", r, m, m)
	l.op("VANDPS", c.sign, x, x)
	l.op("VANDPS", c.magnitude, m, m)
	l.op("VORPS", m, x, x)
	l.drop(r, power, m)
}

// sinConstants are those of sin, in float64: with n the integer nearest x/pi, it is
// (-1)^n sin(x - n pi). The polynomial r + r^3 S(r^2) was fitted for |r| <= pi/2 to a
// relative error of 2^-35.
type sinConstants struct {
	inverse, magic any
	pi, rest       any // pi in two parts
	s              []any
}

func newSin(l *lanes) sinConstants {
	c := sinConstants{
		inverse: l.double(0x1.45f306dc9c883p-2),
		magic:   l.double(3 << 51),
		pi:      l.double(0x1.921fb54442d18p+1),
		rest:    l.double(0x1.1a62633145c07p-53),
	}
	for _, a := range []float64{-0x1.5555554769998p-3, 0x1.11110c4a0de55p-7, -0x1.a017d9a463c93p-13, 0x1.717080a8692b2p-19, -0x1.9a6892f656bdbp-26} {
		c.s = append(c.s, l.double(a))
	}
	return c
}

// sin turns x into its sine, for |x| < 2^27.
func (c *sinConstants) sin(l *lanes, x vector) {
	high := l.vector()
	if l.neon() {
		l.word2(fcvtl2, "FCVTL2.2D", high, x)
		l.word2(fcvtl, "FCVTL.2D", x, x)
		c.wide(l, x)
		c.wide(l, high)
		l.word2(fcvtn, "FCVTN.2S", x, x)
		l.word2(fcvtn2, "FCVTN2.4S", x, high)
		l.drop(high)
		return
	}
	half := l.bytes / 2
	if l.wide() {
		l.op("VEXTRACTF32X8", 1, x, high.as(half))
	} else {
		l.op("VEXTRACTF128", 1, x, high.as(half))
	}
	for _, h := range []vector{x, high} {
		l.op("VCVTPS2PD", h.as(half), h)
		c.wide(l, h)
	}
	if l.wide() {
		l.op("VCVTPD2PS", x, x.as(half))
		l.op("VCVTPD2PS", high, high.as(half))
		l.op("VINSERTF32X8", 1, high.as(half), x, x)
	} else {
		l.op("VCVTPD2PSY", x, x.as(half))
		l.op("VCVTPD2PSY", high, high.as(half))
		l.op("VINSERTF128", 1, high.as(half), x, x)
	}
	l.drop(high)
}

// wide is sin on float64.
func (c *sinConstants) wide(l *lanes, x vector) {
	sign := l.copy(c.magic)
	l.op("VFMADD231PD", c.inverse, x, sign)
	n := l.vector()
	l.op("VSUBPD", c.magic, sign, n)
	l.op("VFNMADD231PD", c.pi, n, x)
	l.op("VFNMADD231PD", c.rest, n, x)
	square := n
	l.op("VMULPD", x, x, square)
	p := l.copy(c.s[len(c.s)-1])
	for i := len(c.s) - 2; i >= 0; i-- {
		l.op("VFMADD213PD", c.s[i], square, p)
	}
	l.op("VMULPD", x, square, square)
	l.op("VFMADD231PD", p, square, x)
	l.op("VPSLLQ", 63, sign, sign)
	l.op("VXORPD", sign, x, x)
	l.drop(sign, n, p)
}

// rounder rounds to bfloat16, nearest even; without constants it leaves numbers alone.
type rounder struct {
	on               bool
	one, half, upper any
	nan              any // only for AVX-512
}

func newRounder(l *lanes, on bool) rounder {
	if !on {
		return rounder{}
	}
	r := rounder{on: true, one: l.bits(1), half: l.bits(0x7fff), upper: l.bits(0xffff0000)}
	if l.wide() {
		r.nan = l.bits(0x7fc00000)
	}
	return r
}

// round rounds v.
func (r *rounder) round(l *lanes, v vector) {
	if !r.on {
		return
	}
	t := l.vector()
	l.op("VPSRLD", 16, v, t)
	if l.wide() {
		l.op("VCMPPS", 3, v, v, spare) // unordered: a NaN
		l.op("VPANDD", r.one, t, t)
		l.op("VPADDD", r.half, v, v)
		l.op("VPADDD", t, v, v)
		l.op("VPANDD", r.upper, v, v)
		l.op("VMOVAPS", r.nan, spare, v)
	} else {
		nan := l.vector()
		l.op("VCMPPS", 3, v, v, nan)
		l.op("VPAND", r.one, t, t)
		l.op("VPADDD", r.half, v, v)
		l.op("VPADDD", t, v, v)
		l.op("VPOR", nan, v, v)
		l.op("VPAND", r.upper, v, v)
		l.drop(nan)
	}
	l.drop(t)
}
