package cpu

import (
	"slices"

	"skald/host/compute"
)

// ShareAll makes the workers of a device take part in jobs of any size.
func ShareAll(d compute.Device) { d.(*device).pool.little = 0 }

// MachineLevels are the levels that this machine has.
func MachineLevels() []string { return Levels() }

// MissingLevels are the others.
func MissingLevels() (names []string) {
	available, _ := machineLevels()
	for _, l := range knownLevels() {
		if !slices.Contains(available, l) {
			names = append(names, string(l))
		}
	}
	return names
}
