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

// Tiles multiplies tiles of bfloat16 and returns how many operations that was. The
// processor must have them and the process the right to use them: see level.go.
func Tiles(turns int) (operations float64) {
	shapes := [64]byte{0: 1} // the palette
	for t := range 6 {
		shapes[16+2*t], shapes[48+t] = 64, 16
	}
	multiplyTiles(&shapes, turns)
	return float64(turns) * 4 * 2 * 16 * 16 * 32
}

// Read reads rows of some bytes, a multiple of 128, eight side by side, and returns
// how many bytes that was. It needs AVX-512.
func Read(p []byte, row int) (bytes float64) {
	groups := len(p) / (8 * row)
	if groups > 0 {
		readRows(&p[0], row, groups)
	}
	return float64(8 * row * groups)
}
