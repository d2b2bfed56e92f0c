//go:build cgo && !nocuda

package cuda

// #cgo CFLAGS: -I${SRCDIR}/../kernels
// #include <cuda.h>
// #include "skald_kernels.h"
import "C"

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"
)

// ErrNoDevice means that there is no driver, or no GPU that this program can use.
var ErrNoDevice = errors.New("cuda: no NVIDIA GPU can be used")

// ErrLost means that the driver's context ended: the device must be closed and opened
// again.
var ErrLost = errors.New("cuda: the GPU gave up on this process's work; the device must be opened again")

// ErrClosed is returned by a device after Close.
var ErrClosed = errors.New("cuda: the device is closed")

// kernelError is an error number of the kernels, which is the CUDA runtime's.
type kernelError struct {
	number int
	text   string
}

func (e kernelError) Error() string { return fmt.Sprintf("error %d: %s", e.number, e.text) }

// kernel is the error of a call to the kernels.
func kernel(code C.int) error {
	if code == 0 {
		return nil
	}
	e := kernelError{int(code), C.GoString(C.skald_error(code))}
	C.skald_last_error() // else it would come back with the next launch
	return e
}

// driver is the error of a call to the driver that package cu does not make.
func driver(code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return like(cu.Success, int(code))
}

// like makes an error of the type of e, which package cu does not export.
func like[T interface {
	~int
	error
}](_ T, number int) error {
	return T(number)
}

// fatal are errors after which a context only repeats them.
var fatal = map[int]bool{
	214: true, // uncorrectable ECC error
	220: true, // uncorrectable NVLink error
	226: true, // contained
	700: true, // illegal address
	702: true, // launch timeout
	709: true, // context is destroyed
	710: true, // assert
	714: true, // hardware stack error
	715: true, // illegal instruction
	716: true, // misaligned address
	717: true, // invalid address space
	718: true, // invalid program counter
	719: true, // launch failure
	721: true, // external device
	999: true, // unknown
}

// number is that of an error from the driver or the kernels, 0 of others.
func number(err error) int {
	if k, ok := as(err, kernelError{}); ok {
		return k.number
	}
	r, _ := as(err, cu.Success)
	return int(r)
}

// as finds an error of the type of like.
func as[T error](err error, like T) (T, bool) {
	ok := errors.As(err, &like)
	return like, ok
}

func outOfMemory(err error) bool { return number(err) == int(cu.OutOfMemory) }
