// Package cuda is a compute.Device on NVIDIA GPUs. It finds devices, owns memory, streams
// and graphs through the driver (gorgonia.org/cu), and calls the kernels in ../kernels.
//
// # Builds
//
// The package needs cgo, CUDA's headers and the libraries that CMake makes from ../kernels
// and ./shim. Without a tag it computes on a GPU; the program starts on machines without a
// driver too, where Open returns ErrNoDevice. With the tag cudaemu the same Go code runs on
// an emulation of a GPU, in tests. With the tag nocuda the package is empty. See
// docs/cuda.md.
//
// # Threads
//
// A context belongs to an OS thread, so one goroutine, locked to its thread, makes all
// calls of one device. Queues collect operations and hand them over in batches. Waiting is
// asking the driver, again and again, whether an event has passed, so that a queue that
// waits does not hold up another.
//
// # Failures
//
// A failure stays in its queue until Sync; operations after it do nothing. What an
// operation can only find out on the device, such as an id outside its table, is noticed
// after the recording or, outside of recordings, before the next operation for EmbedSum,
// and at the next wait for the others: until then they leave out the row at fault, and
// what follows computes with whatever was there before.
//
// Some errors end the driver's context. Then every queue of the device fails with ErrLost,
// and Close resets the GPU for this process, after which Open works again.
package cuda
