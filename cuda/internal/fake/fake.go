//go:build cgo && cudaemu

// Package fake controls the driver of emulated GPUs, for tests. The driver is C++, made
// by CMake; its settings are variables of the environment that it reads when asked:
// SKALD_FAKE_DEVICES, SKALD_FAKE_MEMORY_MIB, SKALD_FAKE_CAPABILITY and
// SKALD_FAKE_INTEGRATED.
package fake

// #cgo CFLAGS: -I${SRCDIR}/driver
// #include "fake.h"
import "C"

// Counts are resources of the driver that are taken and not given back.
type Counts struct{ Memory, Pinned, Streams, Events, Contexts int }

// Taken counts them now.
func Taken() Counts {
	c := C.skald_fake_count()
	return Counts{int(c.memory), int(c.pinned), int(c.streams), int(c.events), int(c.contexts)}
}

// Refuse lets the driver refuse the nth resource that is asked for from now on, and none
// when nth is 0.
func Refuse(nth int) { C.skald_fake_refuse(C.int(nth)) }

// Refused tells whether that has happened.
func Refused() bool { return C.skald_fake_count().refuse == 0 }

// FailLaunch lets the nth launch from now on fail with an error number, either when it is
// queued, which is harmless, or when it runs, which ends the context; 0 means none.
func FailLaunch(nth, number int, whenItRuns bool) {
	when := C.int(0)
	if whenItRuns {
		when = 1
	}
	C.skald_fake_fail_launch(C.int(nth), C.int(number), when)
}

// SetSeed sets the order in which threads and blocks run: 0 is ascending, any other number
// is an order of its own, and with 2, 5, ... one warp runs far ahead of the others.
func SetSeed(seed uint64) { C.skald_fake_set_seed(C.ulonglong(seed)) }
