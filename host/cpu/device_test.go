package cpu_test

import (
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

func TestConformance(t *testing.T) {
	computetest.Run(t, func(t *testing.T) compute.Device { return open(t, 2) })
}
