//go:build cgo && !nocuda

package cuda_test

import (
	"errors"
	"testing"

	"skald/cuda"
	"skald/host/compute"
)

// open opens the first GPU, real or emulated. Small staging buffers send even small
// weights through in pieces.
func open(t *testing.T) compute.Device {
	t.Helper()
	d, err := cuda.Open(0, cuda.Options{StagingBytes: 1 << 10})
	if errors.Is(err, cuda.ErrNoDevice) && !cuda.Emulated {
		t.Skipf("NOT EXAMINED: all cases of %s: %v", t.Name(), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
