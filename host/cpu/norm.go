package cpu

import (
	"math"

	"skald/host/compute"
)

// normTask is one call of RMSNorm or LayerNorm; a chunk is some rows.
type normTask struct {
	y, x  []float32
	w, b  []float32
	n     int
	layer bool
	eps   float32
	span  rowSpan
	round rounding
}

func (q *queue) RMSNorm(y, x compute.Buffer, w compute.Weight, rows int, eps float32) {
	q.normalise("RMSNorm", false, y, x, w, nil, rows, eps)
}

func (q *queue) LayerNorm(y, x compute.Buffer, w, b compute.Weight, rows int, eps float32) {
	q.normalise("LayerNorm", true, y, x, w, b, rows, eps)
}

func (q *queue) normalise(op string, layer bool, y, x compute.Buffer, w, b compute.Weight, rows int, eps float32) {
	o := operands{op: op}
	o.size("rows", rows)
	t := &q.norm
	t.layer, t.eps = layer, eps
	t.n = len(o.weight("w", w).floats)
	t.w = o.vector("w", w, t.n)
	if layer {
		o.weight("b", b)
	}
	t.b = o.vector("b", b, t.n)
	t.y, t.x = o.floats("y", y, rows*t.n), o.floats("x", x, rows*t.n)
	o.inPlace("y", t.y, "x", t.x)
	t.round = o.dtype == compute.BF16
	t.span = spanOf(rows, t.n)
	q.run(t, t.span.chunks(), q.elementWork(len(t.x), 4))
}

func (t *normTask) chunk(i int, s *scratch) {
	for lo, hi := t.span.of(i); lo < hi; lo++ {
		y, x := t.y[lo*t.n:(lo+1)*t.n], t.x[lo*t.n:(lo+1)*t.n]
		if t.layer {
			s.layerNorm(y, x, t.w, t.b, t.eps, t.round)
		} else {
			s.rmsNorm(y, x, t.w, t.eps, t.round)
		}
	}
}

// rmsNorm: y = r(r(x / sqrt(mean(x^2) + eps)) * w). y may be x.
func (k *kernels) rmsNorm(y, x, w []float32, eps float32, round rounding) {
	mean := k.squares(x, 0) / float32(len(x))
	k.elements(round).rmsScale(y, x, w, inverseRoot(mean+eps))
}

// layerNorm: y = r((x-mean) / sqrt(var+eps) * w + b), biased variance. y may be x.
func (k *kernels) layerNorm(y, x, w, b []float32, eps float32, round rounding) {
	mean := k.sum(x) / float32(len(x))
	variance := k.squares(x, mean) / float32(len(x))
	k.elements(round).layerScale(y, x, w, b, mean, inverseRoot(variance+eps))
}

// inverseRoot is 1/sqrt(x), rounded once.
func inverseRoot(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) }

// sum adds four interleaved partial sums, (s0+s1) + (s2+s3).
func sum(x []float32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		v := (*[4]float32)(x[i:])
		s0 += v[0]
		s1 += v[1]
		s2 += v[2]
		s3 += v[3]
	}
	for ; i < len(x); i++ {
		s0 += x[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// squares is sum of (x-mean)^2, added like sum.
func squares(x []float32, mean float32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		v := (*[4]float32)(x[i:])
		a, b, c, d := v[0]-mean, v[1]-mean, v[2]-mean, v[3]-mean
		s0 += float32(a * a)
		s1 += float32(b * b)
		s2 += float32(c * c)
		s3 += float32(d * d)
	}
	for ; i < len(x); i++ {
		a := x[i] - mean
		s0 += float32(a * a)
	}
	return (s0 + s1) + (s2 + s3)
}
