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
	counts := []int{1, 2, 3, 4}
	if testing.Short() {
		counts = []int{1, 3}
	}
	for _, threads := range counts {
		var digests map[string]string
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			digests = computetest.Digests(t, func(t *testing.T) compute.Device {
				d := open(t, threads)
				cpu.ShareAll(d)
				return d
			})
		})
		if first == nil {
			first = digests
		}
		for op, digest := range digests {
			if digest != first[op] {
				t.Errorf("%s: %d threads give other bytes than one", op, threads)
			}
		}
	}
	t.Logf("%d operations, %v threads", len(first), counts)
}
