//go:build !noasm

package peak

// FMA returns the floating-point operations a second of float32 multiply-adds in
// vectors of 32 or 64 bytes, which the processor must have; 0 for other widths.
func FMA(bytes, threads int) float64 {
	switch bytes {
	case 32:
		return Of(fmaAVX2, 12*8*2, threads)
	case 64:
		return Of(fmaAVX512, 12*16*2, threads)
	}
	return 0
}
