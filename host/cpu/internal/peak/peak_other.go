//go:build noasm || !amd64

package peak

// FMA returns 0: there is no loop for this architecture.
func FMA(bytes, turns int) (operations float64) { return 0 }

// Tiles returns 0, too.
func Tiles(turns int) (operations float64) { return 0 }

// Read returns 0, too.
func Read(p []byte, row int) (bytes float64) { return 0 }
