//go:build noasm || !amd64

package peak

// FMA returns 0: there is no loop for this architecture.
func FMA(bytes, turns int) (operations float64) { return 0 }
