//go:build cgo && !nocuda

// Package nvml reads what NVIDIA's management library tells about a GPU. The library is
// opened at run time and belongs to the driver: it may be absent, older than this program,
// or say "not supported" to any question, as it does to many on integrated GPUs. So every
// answer is optional, and a function is looked up before it is called, because calling one
// that the library lacks would end the program.
package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"skald/host/compute"
)

// ErrUnavailable is why there is nothing to read.
var ErrUnavailable = errors.New("nvml: not available")

// libraryName is what the driver installs.
const libraryName = "libnvidia-ml.so.1"

// needed are the functions without which nothing can be read.
var needed = []string{"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetHandleByUUID"}

// Library is the open library. Its methods are safe for concurrent use, as NVML's are.
type Library struct {
	lib nvml.Interface
}

// Open opens the library, or fails with ErrUnavailable.
func Open() (*Library, error) {
	probe := dl.New(libraryName, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := probe.Open(); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	defer probe.Close()
	for _, name := range needed {
		if probe.Lookup(name) != nil {
			return nil, fmt.Errorf("%w: %s has no function %s", ErrUnavailable, libraryName, name)
		}
	}
	lib := nvml.New()
	if r := lib.Init(); r != nvml.SUCCESS {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, r)
	}
	return &Library{lib}, nil
}

// Close gives the library back.
func (l *Library) Close() error {
	if r := l.lib.Shutdown(); r != nvml.SUCCESS {
		return fmt.Errorf("nvml: %v", r)
	}
	return nil
}

// Read asks for everything about the GPU with that UUID, "GPU-" and five groups of digits.
func (l *Library) Read(uuid string) (compute.Sensors, error) {
	var r compute.Sensors
	d, code := l.lib.DeviceGetHandleByUUID(uuid)
	if code != nvml.SUCCESS {
		return r, fmt.Errorf("nvml: GPU %s: %v", uuid, code)
	}
	if l.has("nvmlDeviceGetName") {
		r.Name, _ = d.GetName()
	}
	if l.has("nvmlSystemGetDriverVersion") {
		r.Driver, _ = l.lib.SystemGetDriverVersion()
	}
	l.readMemory(&r, d)
	if l.has("nvmlDeviceGetUtilizationRates") {
		if u, code := d.GetUtilizationRates(); code == nvml.SUCCESS {
			r.Utilisation, r.MemoryUtilisation = number[int](u.Gpu), number[int](u.Memory)
		}
	}
	if l.has("nvmlDeviceGetTemperature") {
		r.Temperature = answer[int](d.GetTemperature(nvml.TEMPERATURE_GPU))
	}
	if l.has("nvmlDeviceGetPowerUsage") {
		if milliwatts, code := d.GetPowerUsage(); code == nvml.SUCCESS {
			watts := float64(milliwatts) / 1000
			r.Power = &watts
		}
	}
	if l.has("nvmlDeviceGetClockInfo") {
		r.Clock = answer[int](d.GetClockInfo(nvml.CLOCK_SM))
		r.MemoryClock = answer[int](d.GetClockInfo(nvml.CLOCK_MEM))
	}
	if l.has("nvmlDeviceGetEccMode") {
		if now, _, code := d.GetEccMode(); code == nvml.SUCCESS {
			on := now == nvml.FEATURE_ENABLED
			r.ECC = &on
		}
	}
	if l.has("nvmlDeviceGetTotalEccErrors") {
		r.ECCErrors = answer[int64](d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC))
	}
	return r, nil
}

// readMemory prefers the second version, which does not count what the driver reserves
// as used.
func (l *Library) readMemory(r *compute.Sensors, d nvml.Device) {
	if l.has("nvmlDeviceGetMemoryInfo_v2") {
		if m, code := d.GetMemoryInfo_v2(); code == nvml.SUCCESS {
			r.MemoryTotal, r.MemoryUsed, r.MemoryFree = number[int64](m.Total), number[int64](m.Used), number[int64](m.Free)
			return
		}
	}
	if l.has("nvmlDeviceGetMemoryInfo") {
		if m, code := d.GetMemoryInfo(); code == nvml.SUCCESS {
			r.MemoryTotal, r.MemoryUsed, r.MemoryFree = number[int64](m.Total), number[int64](m.Used), number[int64](m.Free)
		}
	}
}

func (l *Library) has(function string) bool { return l.lib.Extensions().LookupSymbol(function) == nil }

type unsigned interface{ uint32 | uint64 }

func number[T int | int64, N unsigned](n N) *T {
	v := T(n)
	return &v
}

// answer is n, or nil when it was not answered.
func answer[T int | int64, N unsigned](n N, code nvml.Return) *T {
	if code != nvml.SUCCESS {
		return nil
	}
	return number[T](n)
}
