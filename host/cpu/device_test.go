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
	return openWith(t, cpu.Options{Threads: threads})
}

func openWith(t *testing.T, o cpu.Options) compute.Device {
	t.Helper()
	d, err := cpu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestConformance runs the common suite at every level, with up to 4 threads, whose
// number must not change a bit of any operation, and with matrices packed when they are
// loaded or in the call.
func TestConformance(t *testing.T) {
	counts := []int{1, 2, 4}
	if testing.Short() {
		counts = []int{1, 2}
	}
	packs := []int64{-1, 1 << 40} // never, always
	for _, level := range cpu.MachineLevels() {
		counts := counts
		if level == "go" && !testing.Short() {
			counts = []int{1, 2, 3, 4}
		}
		t.Run(level, func(t *testing.T) {
			var first map[string]string
			for _, threads := range counts {
				o := cpu.Options{Threads: threads, Level: level, PackBytes: packs[threads%2]}
				var digests map[string]string
				t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
					digests = computetest.Digests(t, func(t *testing.T) compute.Device {
						d := openWith(t, o)
						cpu.ShareAll(d)
						return d
					})
				})
				if first == nil {
					first = digests
				}
				for op, digest := range digests {
					if digest != first[op] {
						t.Errorf("%s: %+v gives other bytes than one thread", op, o)
					}
				}
			}
			t.Logf("%d operations, %v threads", len(first), counts)
		})
	}
	t.Logf("levels %v; NOT EXAMINED, for this machine or build lacks them: %v", cpu.MachineLevels(), cpu.MissingLevels())
}
