//go:build !noasm && !linux

package cpu

// allowTiles: only of Linux is it known how to ask.
func allowTiles() bool { return false }
