//go:build !noasm

package cpu

import "golang.org/x/sys/unix"

// allowTiles asks the kernel for the use of AMX by this process, once more if it was
// asked before.
func allowTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
