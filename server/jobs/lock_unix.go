//go:build unix

package jobs

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes an exclusive lock that the system drops with the process.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
