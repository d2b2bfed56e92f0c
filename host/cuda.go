//go:build !nocuda

package host

import (
	"errors"
	"fmt"

	"skald/cuda"
	"skald/host/compute"
)

// builtWithCUDA tells whether this program can use GPUs where there are some.
const builtWithCUDA = true

func openCUDA(index int) (compute.Device, error) { return cuda.Open(index, cuda.Options{}) }

// noCUDA tells whether an error of openCUDA means that there is nothing to open.
func noCUDA(err error) bool { return errors.Is(err, cuda.ErrNoDevice) }

// findCUDA describes the GPUs, or says why there are none.
func findCUDA() ([]Found, error) {
	gpus, err := cuda.GPUs()
	if err != nil {
		return nil, err
	}
	found := make([]Found, len(gpus))
	for i, g := range gpus {
		found[i] = Found{
			Device: fmt.Sprintf("cuda:%d", i), Info: g.Info(),
			Memory: compute.MemoryInfo{Total: g.Memory}, Why: g.Unsupported(),
		}
		found[i].Usable = found[i].Why == ""
		if sensors, err := g.Sensors(); err != nil {
			found[i].Unread = err.Error()
		} else {
			found[i].Sensors = &sensors
		}
	}
	return found, nil
}

// Architectures are the GPUs that device code was compiled for.
func Architectures() []string { return cuda.Architectures() }
