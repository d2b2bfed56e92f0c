package cpu

import "math"

var negInf = float32(math.Inf(-1))

// dotRows sets scores[i] to the product of x with row i of rows [len(scores), len(x)].
func dotRows(scores, x, rows []float32) {
	n := len(x)
	for i := 0; i < len(scores); i += 4 {
		var w [4][]float32
		for j := range w {
			at := min(i+j, len(scores)-1) * n
			w[j] = rows[at : at+n]
		}
		var sums [4]float32
		for k := 0; k < n; k += kBlock {
			end := min(k+kBlock, n)
			dot1x4(&sums, x[k:end], w[0][k:end], w[1][k:end], w[2][k:end], w[3][k:end])
		}
		copy(scores[i:], sums[:])
	}
}

// softmaxState is where the running softmax of one query stands: the highest score so
// far, and the sum of the weights.
type softmaxState struct{ top, total float32 }

// softmaxRow takes the next scores of a query into its softmax: p, scores before scaling,
// become weights exp(p*scale - top). What was added up before is to be multiplied by
// shrink.
func softmaxRow(p []float32, scale float32, state *softmaxState) (shrink float32) {
	top := state.top
	for i, v := range p {
		p[i] = float32(v * scale)
		top = max(top, p[i])
	}
	shrink = exp(state.top - top)
	total := float32(state.total * shrink)
	for i, v := range p {
		p[i] = exp(v - top)
		total += p[i]
	}
	state.top, state.total = top, total
	return shrink
}

// softmaxStep takes the next block of keys into the running softmax of one query:
// o holds sum_j exp(s_j - top) v_j, s being scores*scale. values is [len(scores), len(o)];
// scores become weights.
func softmaxStep(o, scores, values []float32, scale float32, state *softmaxState) {
	if shrink := softmaxRow(scores, scale, state); shrink != 1 {
		rounding(false).scale(o, o, shrink)
	}
	n := len(o)
	i := 0
	for ; i+4 <= len(scores); i += 4 {
		v := values[i*n:]
		axpy4(o, (*[4]float32)(scores[i:]), v[:n], v[n:2*n], v[2*n:3*n], v[3*n:4*n])
	}
	for ; i < len(scores); i++ {
		axpy(o, scores[i], values[i*n:(i+1)*n])
	}
}
