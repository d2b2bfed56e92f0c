package cpu

// Instructions for bfloat16 want a kernel in pairs of neighbouring channels,
//
//	[out/32][in/32][taps][2][16][16][2] bfloat16,
//
// where the last four are two times 16 outputs, and for each of these 32 channels:
// pairs, outputs, the two of a pair. What there is too little of is filled up with
// zeros.
const (
	convColumns = 32
	convPairs   = convColumns * stepTerms // in one place of out, in and taps
)

// pairPlaces returns where pairs hold a number of a kernel.
func pairPlaces(taps, in int) func(k, o, i int) int {
	steps := ceilDiv(in, stepTerms)
	return func(k, o, i int) int {
		place := (o/convColumns*steps+i/stepTerms)*taps + k
		return place*convPairs + o%convColumns/16*512 + i%stepTerms/2*32 + o%16*2 + i%2
	}
}

// tapPairs is how many numbers packTapPairs makes.
func tapPairs(taps, out, in int) int {
	return ceilDiv(out, convColumns) * ceilDiv(in, stepTerms) * taps * convPairs
}

// packTapPairs turns a kernel into pairs; at is where w holds a number.
func packTapPairs(w []float32, taps, out, in int, at func(k, o, i int) int) []uint16 {
	var pairs []uint16
	aligned(&pairs, tapPairs(taps, out, in))
	to := pairPlaces(taps, in)
	for o := range out {
		for i := range in {
			for k := range taps {
				pairs[to(k, o, i)] = bf16Bits(w[at(k, o, i)])
			}
		}
	}
	return pairs
}

// panelsOfPairs is for the one who multiplies float32 with a kernel that was loaded as
// bfloat16.
func panelsOfPairs(pairs []uint16, taps, out, in int) []float32 {
	w := make([]float32, len(pairs))
	widen(w, pairs)
	return packTapPanels(w, taps, out, in, pairPlaces(taps, in))
}
