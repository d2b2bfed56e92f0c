//go:build nocuda

package host

import (
	"errors"

	"skald/host/compute"
)

const builtWithCUDA = false

func openCUDA(int) (compute.Device, error) { return nil, ErrNoCUDA }

func noCUDA(err error) bool { return errors.Is(err, ErrNoCUDA) }

func findCUDA() ([]Found, error) { return nil, ErrNoCUDA }

// Architectures are the GPUs that device code was compiled for.
func Architectures() []string { return nil }
