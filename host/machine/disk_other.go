//go:build !unix

package machine

import (
	"errors"
	"fmt"
)

// DiskFree returns the bytes that may still be written where dir lies, or will lie.
func DiskFree(dir string) (int64, error) {
	return 0, fmt.Errorf("free space of %s: %w", dir, errors.ErrUnsupported)
}
