package checkpoint

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// readAhead asks the system to read pages soon. It is a hint.
func readAhead(pages []byte) { _ = unix.Madvise(pages, unix.MADV_WILLNEED) }

// populate maps pages for reading, as Linux does at once since 5.14.
func populate(pages []byte) error {
	for {
		switch err := unix.Madvise(pages, unix.MADV_POPULATE_READ); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EFAULT), errors.Is(err, unix.EIO), errors.Is(err, unix.EHWPOISON):
			return fmt.Errorf("checkpoint: reading the weights: %w: was a file cut short, or is its disk failing?", err)
		default: // an older system, or one that does not offer it
			touch(pages)
			return nil
		}
	}
}
