//go:build cgo && !nocuda

package cuda

// #include <cuda.h>
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"skald/host/compute"
	"skald/host/machine"
)

// Options configure a device. The zero value is a good choice.
type Options struct {
	// StagingBytes is the size of a pinned buffer that weights pass through; there are a
	// few. 0 means 8 MiB.
	StagingBytes int
}

// device is a GPU's primary context.
type device struct {
	gpu    GPU
	handle cu.Device
	thread *thread
	loader *loader
	nvml   *monitor

	mu          sync.Mutex
	allocations map[cu.DevicePtr]int64
	pinned      map[unsafe.Pointer]bool
	used        int64
	queues      map[*queue]bool
	closed      bool
	lost        error
}

// Open makes the GPU with that index ready. It fails with ErrNoDevice where there is none.
func Open(index int, o Options) (compute.Device, error) {
	if o.StagingBytes == 0 {
		o.StagingBytes = 8 << 20
	}
	if o.StagingBytes < 64 {
		return nil, fmt.Errorf("cuda: staging buffers of %d bytes are too small: want at least 64", o.StagingBytes)
	}
	gpus, err := GPUs()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(gpus) {
		return nil, fmt.Errorf("%w: there is no GPU %d: this machine has %d, counted from 0", ErrNoDevice, index, len(gpus))
	}
	if why := gpus[index].Unsupported(); why != "" {
		return nil, fmt.Errorf("%w: GPU %d, %s: %s", ErrNoDevice, index, gpus[index].Name, why)
	}
	d := &device{gpu: gpus[index], allocations: map[cu.DevicePtr]int64{}, pinned: map[unsafe.Pointer]bool{}, queues: map[*queue]bool{}}
	d.thread, err = startThread(func() (err error) {
		if d.handle, err = cu.GetDevice(index); err != nil {
			return err
		}
		// The kernels' runtime works in the primary context, so that is the one to share.
		// It is never wrapped in a cu.Ctx, which would destroy it.
		context, err := d.handle.RetainPrimaryCtx()
		if err != nil {
			return err
		}
		if err := cu.SetCurrentContext(context); err != nil {
			return errors.Join(err, d.handle.ReleasePrimaryCtx())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: opening GPU %d, %s: %w", index, d.gpu.Name, err)
	}
	d.loader = newLoader(d, o.StagingBytes)
	d.nvml = openMonitor(d.gpu.UUID)
	return d, nil
}

func (d *device) Info() compute.Info {
	return d.gpu.Info()
}

// Sensors asks the GPU's monitor; everything is unknown without one.
func (d *device) Sensors() compute.Sensors {
	r, _ := d.nvml.read()
	return r
}

// Memory is the whole GPU's, as NVML sees it or else the driver; Used counts what this
// device handed out.
func (d *device) Memory() compute.MemoryInfo {
	d.mu.Lock()
	m := compute.MemoryInfo{Used: d.used}
	d.mu.Unlock()
	r, _ := d.nvml.read()
	if !d.gpu.Integrated && r.MemoryTotal != nil && r.MemoryFree != nil {
		m.Total, m.Free = *r.MemoryTotal, *r.MemoryFree
		return m
	}
	d.do("reading its memory", func() (err error) {
		m.Free, m.Total, err = cu.MemInfo()
		return err
	})
	if d.gpu.Integrated {
		// The driver counts what the system could give back by dropping cached files as
		// taken; weights that were just read are such files.
		if s := machine.ReadMemory(os.DirFS("/")); s.Total() > 0 {
			m.Total, m.Free = s.Total(), s.Available()
		}
	}
	return m
}

// do runs f on the device's thread, unless the device is closed or lost.
func (d *device) do(what string, f func() error) error {
	if err := d.usable(); err != nil {
		return err
	}
	return d.failed(what, d.thread.do(f))
}

func (d *device) usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	return d.lost
}

// failed says what an error of the driver happened to, and marks the device as lost if
// it was that grave.
func (d *device) failed(what string, err error) error {
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrLost) {
		return err
	}
	err = fmt.Errorf("cuda: %s: %w", what, err)
	if fatal[number(err)] {
		err = fmt.Errorf("%w (%w)", ErrLost, err)
		d.mu.Lock()
		if d.lost == nil {
			d.lost = err
		}
		d.mu.Unlock()
	}
	return err
}

// alloc takes memory on the GPU.
func (d *device) alloc(bytes int64, what string) (p cu.DevicePtr, err error) {
	if bytes == 0 {
		return 0, nil
	}
	err = d.do("memory for "+what, func() (err error) {
		p, err = cu.MemAlloc(bytes)
		if outOfMemory(err) {
			free, total, _ := cu.MemInfo()
			err = &MemoryError{What: what, Bytes: bytes, Free: free, Total: total, cause: err}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.allocations[p] = bytes
	d.used += bytes
	return p, nil
}

// free gives memory back.
func (d *device) free(p cu.DevicePtr) error {
	if p == 0 {
		return nil
	}
	d.mu.Lock()
	bytes, ok := d.allocations[p]
	delete(d.allocations, p)
	d.used -= bytes
	d.mu.Unlock()
	if !ok {
		return nil // Close was faster
	}
	return d.giveBack("memory", func() error { return cu.MemFree(p) })
}

// hostAlloc takes pinned memory of the host.
func (d *device) hostAlloc(bytes int) (p unsafe.Pointer, err error) {
	err = d.do("pinned memory", func() error {
		return driver(C.cuMemHostAlloc(&p, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE))
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned[p] = true
	return p, nil
}

func (d *device) hostFree(p unsafe.Pointer) error {
	d.mu.Lock()
	ok := d.pinned[p]
	delete(d.pinned, p)
	d.mu.Unlock()
	if !ok {
		return nil
	}
	return d.giveBack("pinned memory", func() error { return cu.MemFreeHost(p) })
}

// giveBack runs f, unless the context is lost and takes everything with it.
func (d *device) giveBack(what string, f func() error) error {
	err := d.do("giving back "+what, f)
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

func (d *device) NewBuffer(t compute.DType, n int) (compute.Buffer, error) {
	if t != compute.F32 && t != compute.BF16 && t != compute.I32 {
		return nil, fmt.Errorf("cuda: a buffer cannot hold %v, only F32, BF16 or I32", t)
	}
	if n < 0 || n > math.MaxInt/8 {
		return nil, fmt.Errorf("cuda: a buffer cannot hold %d numbers", n)
	}
	if err := d.usable(); err != nil {
		return nil, err
	}
	p, err := d.alloc(int64(n)*int64(t.Size()), "a buffer")
	if err != nil {
		return nil, err
	}
	return &buffer{dtype: t, at: p, n: n, owner: d}, nil
}

// Close ends the queues and frees everything. A lost context is reset, so that the GPU
// can be opened again.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	lost := d.lost
	queues := make([]*queue, 0, len(d.queues))
	for q := range d.queues {
		queues = append(queues, q)
	}
	allocations, pinned := d.allocations, d.pinned
	d.allocations, d.pinned, d.used = nil, nil, 0
	d.mu.Unlock()
	d.nvml.close()
	var errs []error
	note := func(what string, err error) {
		if err != nil && lost == nil { // a lost context fails at everything
			errs = append(errs, fmt.Errorf("cuda: closing: %s: %w", what, err))
		}
	}
	d.thread.do(func() error {
		for _, q := range queues {
			note("a queue", q.destroy())
		}
		d.loader.destroy(note)
		for p := range allocations {
			note("memory", cu.MemFree(p))
		}
		for p := range pinned {
			note("pinned memory", cu.MemFreeHost(p))
		}
		if lost != nil {
			d.handle.ResetPrimaryCtx()
		}
		note("the context", d.handle.ReleasePrimaryCtx())
		return errEnd
	})
	return errors.Join(errs...)
}

// MemoryError says that the GPU has no room.
type MemoryError struct {
	What               string
	Bytes, Free, Total int64
	cause              error
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the GPU has no room for %s of %d bytes: %d of %d bytes are free", e.What, e.Bytes, e.Free, e.Total)
}

func (e *MemoryError) Unwrap() error { return e.cause }

// pointer is a device address as C wants it. It never points to Go's memory.
func pointer(p cu.DevicePtr) unsafe.Pointer {
	u := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&u))
}
