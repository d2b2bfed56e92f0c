//go:build cgo && !nocuda && !cudaemu

package cuda

// Where the libraries lie is told by CGO_LDFLAGS, from the env.sh that CMake writes.

// #cgo LDFLAGS: -Wl,--start-group -lskald_kernels -lcudart_static -lcuda -Wl,--end-group -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -lm -ldl -lrt -lpthread
// #cgo CFLAGS: -I${SRCDIR}/shim
// #include "shim.h"
import "C"

// Emulated tells whether the devices of this build are emulated.
const Emulated = false

// driverError is what the driver said when the program started, 0 when it is there.
func driverError() int { return int(C.skald_driver_error) }
