//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"fmt"
	"os"
	"strings"

	"gorgonia.org/cu"

	"skald/cuda/internal/nvml"
	_ "skald/cuda/internal/toolkit" // says what to do where there is none
	"skald/host/compute"
)

// libraries is a digest of the libraries that were linked, set by the build: when they
// change, Go links and tests again.
var libraries string

// GPU is what the driver says of a device before it is opened.
type GPU struct {
	Index        int
	Name         string
	UUID         string // as NVML writes it
	Major, Minor int    // compute capability
	SMs          int    // multiprocessors
	Memory       int64
	Integrated   bool   // shares the system's memory
	Driver       string // the newest CUDA that the driver knows, such as "13.0"
}

// GPUs lists the devices that the driver shows to this process, which the variable
// CUDA_VISIBLE_DEVICES may limit. It fails with ErrNoDevice where there are none.
func GPUs() ([]GPU, error) {
	switch e := driverError(); {
	case e == int(cu.NoDevice):
		return nil, fmt.Errorf("%w: this machine has no NVIDIA driver, or its driver finds no GPU", ErrNoDevice)
	case e != 0:
		return nil, fmt.Errorf("%w: the NVIDIA driver does not start: %w", ErrNoDevice, like(cu.Success, e))
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("%w: the NVIDIA driver does not count its GPUs: %w", ErrNoDevice, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: the NVIDIA driver finds none; CUDA_VISIBLE_DEVICES is %q", ErrNoDevice, os.Getenv("CUDA_VISIBLE_DEVICES"))
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		if gpus[i], err = describe(i); err != nil {
			return nil, fmt.Errorf("%w: GPU %d: %w", ErrNoDevice, i, err)
		}
	}
	return gpus, nil
}

func describe(index int) (GPU, error) {
	g := GPU{Index: index, Driver: fmt.Sprintf("%d.%d", cu.Version()/1000, cu.Version()%1000/10)}
	d, err := cu.GetDevice(index)
	if err != nil {
		return g, err
	}
	if g.Name, err = d.Name(); err != nil {
		return g, err
	}
	if g.Memory, err = d.TotalMem(); err != nil {
		return g, err
	}
	if id, err := d.UUID(); err == nil {
		g.UUID = "GPU-" + id.String()
	}
	integrated := 0
	for attribute, to := range map[cu.DeviceAttribute]*int{
		cu.ComputeCapabilityMajor: &g.Major, cu.ComputeCapabilityMinor: &g.Minor,
		cu.MultiprocessorCount: &g.SMs, cu.Integrated: &integrated,
	} {
		if *to, err = d.Attribute(attribute); err != nil {
			return g, err
		}
	}
	g.Integrated = integrated != 0
	return g, nil
}

// Unsupported says why this program cannot use the GPU, or "".
func (g GPU) Unsupported() string {
	if g.Major < 8 {
		return fmt.Sprintf("it has compute capability %d.%d and no bfloat16; the kernels need 8.0 or more (Ampere, 2020), and there are none in fp16: use --device cpu", g.Major, g.Minor)
	}
	return ""
}

// Info describes the GPU as its device does.
func (g GPU) Info() compute.Info {
	return compute.Info{Kind: "cuda", Name: g.Name, Detail: g.detail()}
}

// Sensors asks the GPU's monitor.
func (g GPU) Sensors() (compute.Sensors, error) {
	m := openMonitor(g.UUID)
	defer m.close()
	return m.read()
}

func (g GPU) detail() string {
	kind := ""
	if g.Integrated {
		kind = ", shares the system's memory"
	}
	return fmt.Sprintf("compute capability %d.%d, %d multiprocessors, driver for CUDA %s%s", g.Major, g.Minor, g.SMs, g.Driver, kind)
}

// Architectures are what the kernels were compiled for: sm_90, ..., or "emulation".
func Architectures() []string {
	_ = libraries
	build := C.GoString(C.skald_build())
	_, list, ok := strings.Cut(build, "sm ")
	if !ok {
		return []string{build}
	}
	var all []string
	for _, a := range strings.Fields(list) {
		all = append(all, "sm_"+strings.TrimSuffix(a, "-real"))
	}
	return all
}

// monitor reads one GPU through NVML, where there is one.
type monitor struct {
	library *nvml.Library
	uuid    string
	err     error
}

func openMonitor(uuid string) *monitor {
	l, err := nvml.Open()
	return &monitor{l, uuid, err}
}

func (m *monitor) read() (compute.Sensors, error) {
	if m.err != nil {
		return compute.Sensors{}, m.err
	}
	return m.library.Read(m.uuid)
}

func (m *monitor) close() {
	if m.err == nil {
		m.library.Close() // there is nothing to do about its errors
	}
}
