//go:build !linux

package bench

import (
	"errors"
	"fmt"
)

func evict(string) error {
	return fmt.Errorf("only known on Linux: %w", errors.ErrUnsupported)
}

func residentBytes() (int64, error) {
	return 0, fmt.Errorf("the memory of this process is only known on Linux: %w", errors.ErrUnsupported)
}
