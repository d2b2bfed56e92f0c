//go:build cgo && !nocuda && !cudaemu

package cuda_test

import (
	"testing"

	"skald/host/compute/computetest"
)

func TestConformance(t *testing.T) { computetest.Run(t, open) }
