package cpu_test

import (
	"fmt"
	"testing"

	"skald/host/compute"
	"skald/host/compute/computetest"
	"skald/host/cpu"
)

func open(t *testing.T, threads int) compute.Device {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestConformance runs the common suite with 1 to 4 threads, whose number must not
// change a bit of any operation.
func TestConformance(t *testing.T) {
	var first map[string]string
	for threads := 1; threads <= 4; threads++ {
		var digests map[string]string
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			digests = computetest.Digests(t, func(t *testing.T) compute.Device { return open(t, threads) })
		})
		if first == nil {
			first = digests
		}
		for op, digest := range digests {
			if digest != first[op] {
				t.Errorf("%s: %d threads give other bytes than 1", op, threads)
			}
		}
	}
	t.Logf("%d operations, 1 to 4 threads", len(first))
}
