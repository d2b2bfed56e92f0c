//go:build !noasm

package peak

// FMA runs float32 multiply-adds in vectors of 32 or 64 bytes, which the processor
// must have, and returns how many operations they were, two each; 0 for other widths.
func FMA(bytes, turns int) (operations float64) {
	switch bytes {
	case 32:
		fmaAVX2(turns)
	case 64:
		fmaAVX512(turns)
	default:
		return 0
	}
	const vectors, each = 12, 2
	return float64(turns) * vectors * each * float64(bytes/4)
}
