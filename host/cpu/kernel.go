package cpu

// kBlock is how many terms of a sum are added in one go; see the package comment.
const kBlock = 256

// The kernels below add one block of products to running sums. All rows have
// the length of the first, at most kBlock.

// dot1x4 multiplies one row with four.
func dot1x4(sums *[4]float32, x0, w0, w1, w2, w3 []float32) {
	w0, w1, w2, w3 = w0[:len(x0)], w1[:len(x0)], w2[:len(x0)], w3[:len(x0)]
	var s0, s1, s2, s3 float32
	for k, a := range x0 {
		s0 += float32(a * w0[k])
		s1 += float32(a * w1[k])
		s2 += float32(a * w2[k])
		s3 += float32(a * w3[k])
	}
	sums[0] += s0
	sums[1] += s1
	sums[2] += s2
	sums[3] += s3
}

// dotTile is dot1x4 for rows of x that begin stride apart, of n terms each.
func dotTile(sums [][4]float32, x []float32, stride, n int, w *[4][]float32) {
	w0, w1, w2, w3 := w[0][:n], w[1][:n], w[2][:n], w[3][:n]
	for r := range sums {
		dot1x4(&sums[r], x[r*stride:r*stride+n], w0, w1, w2, w3)
	}
}

// dot1x4BF16 is dot1x4 with w widened on the way.
func dot1x4BF16(sums *[4]float32, x0 []float32, w0, w1, w2, w3 []uint16) {
	w0, w1, w2, w3 = w0[:len(x0)], w1[:len(x0)], w2[:len(x0)], w3[:len(x0)]
	var s0, s1, s2, s3 float32
	for k, a := range x0 {
		s0 += float32(a * bf16Float(w0[k]))
		s1 += float32(a * bf16Float(w1[k]))
		s2 += float32(a * bf16Float(w2[k]))
		s3 += float32(a * bf16Float(w3[k]))
	}
	sums[0] += s0
	sums[1] += s1
	sums[2] += s2
	sums[3] += s3
}

// axpy4 adds four scaled rows to y, one after the other.
func axpy4(y []float32, a *[4]float32, v0, v1, v2, v3 []float32) {
	v0, v1, v2, v3 = v0[:len(y)], v1[:len(y)], v2[:len(y)], v3[:len(y)]
	a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
	for i, s := range y {
		s += float32(a0 * v0[i])
		s += float32(a1 * v1[i])
		s += float32(a2 * v2[i])
		s += float32(a3 * v3[i])
		y[i] = s
	}
}

// axpy adds a scaled row to y.
func axpy(y []float32, a float32, v []float32) {
	v = v[:len(y)]
	for i := range y {
		y[i] += float32(a * v[i])
	}
}

// storeTile finishes four columns of a tile, or as many as are left: bias, rounding,
// residual, rounding. Row r goes to y[at+r*step:]. bias and residual may be nil.
func storeTile(y []float32, at, step, columns int, sums [][4]float32, bias, residual []float32, round rounding) {
	columns = min(columns, 4)
	var b [4]float32
	copy(b[:columns], bias)
	for r := range sums {
		row := y[at+r*step:][:columns]
		for j := range row {
			v := round.of(sums[r][j] + b[j])
			if residual != nil {
				v = round.of(residual[at+r*step+j] + v)
			}
			row[j] = v
		}
	}
}
