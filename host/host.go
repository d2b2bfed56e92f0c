// Package host chooses the device that songs are made on.
package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"skald/host/compute"
	"skald/host/cpu"
)

// Options are those of a processor; a GPU needs none.
type Options struct {
	Threads   int   // cores it may use, 0 for all
	PackBytes int64 // see cpu.Options
}

// Open opens a device by its name:
//
//	auto      the first GPU, or else the processor; also ""
//	cpu       the processor
//	cuda      the first NVIDIA GPU
//	cuda:N    the NVIDIA GPU with index N
//
// The zero value of o is a good choice. Passed tells why auto did not take a GPU.
func Open(device string, o Options) (compute.Device, error) {
	kind, index, numbered := strings.Cut(device, ":")
	switch {
	case (kind == "auto" || device == "") && !numbered:
		if d, err := openCUDA(0); !noCUDA(err) {
			return d, err
		}
		return openCPU(device, o)
	case kind == "cpu" && !numbered:
		return openCPU(device, o)
	case kind == "cuda" && !numbered:
		return openCUDA(0)
	case kind == "cuda":
		n, err := strconv.ParseUint(index, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("host: device %q: want cuda:N with N the index of a GPU, like cuda:0", device)
		}
		return openCUDA(int(n))
	}
	return nil, fmt.Errorf("host: unknown device %q: want auto, cpu, cuda or cuda:N", device)
}

func openCPU(device string, o Options) (compute.Device, error) {
	d, err := cpu.New(cpu.Options{Threads: o.Threads, PackBytes: o.PackBytes})
	if err != nil {
		return nil, fmt.Errorf("host: open device %q: %w", device, err)
	}
	return d, nil
}

// ErrNoCUDA is why a CUDA device cannot be opened by a program built without it.
var ErrNoCUDA = errors.New("host: this program was built without CUDA (build tag nocuda): use device cpu or auto, or build it with the CUDA toolkit and without that tag")

// Passed tells why a program that was built with CUDA does not take a GPU by itself; nil
// when it does, or was built without.
func Passed() error {
	if !builtWithCUDA {
		return nil
	}
	found, err := findCUDA()
	if err == nil && !found[0].Usable {
		err = errors.New(found[0].Why)
	}
	return err
}
