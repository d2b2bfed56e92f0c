package bench

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// evict puts a file out of the system's cache, unless others have it mapped.
func evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // what is not on the disk yet cannot be dropped
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// residentBytes is the memory of the machine that this process has, files included.
func residentBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return resident * int64(os.Getpagesize()), nil
}
