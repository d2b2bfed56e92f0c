package cpu

import "skald/host/compute"

// ShareAll makes the workers of a device take part in jobs of any size.
func ShareAll(d compute.Device) { d.(*device).pool.little = 0 }
