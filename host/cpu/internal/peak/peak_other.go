//go:build noasm || !amd64

package peak

// FMA returns 0: there is no loop for this architecture.
func FMA(bytes, threads int) float64 { return 0 }
