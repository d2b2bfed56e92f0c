//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// loader brings weights to the device: pieces of the mapped file are copied to pinned
// memory, from there by a stream to the device, and converted by a kernel behind it. Each
// lane has its own memory and stream, so that reading the file, the bus and converting
// overlap. On a GPU that shares the system's memory it is the same: one copy, since the
// pages of the file are not addresses of the GPU.
type loader struct {
	d     *device
	bytes int // of a lane
	lanes [4]*lane
}

type lane struct {
	mu     sync.Mutex
	pinned unsafe.Pointer
	raw    cu.DevicePtr // what arrived, to be converted
	middle cu.DevicePtr // what was rounded, to be widened again
	stream cu.Stream
	passed wait
	ready  bool // the stream and the event exist
}

func newLoader(d *device, bytes int) *loader {
	l := &loader{d: d, bytes: bytes}
	for i := range l.lanes {
		l.lanes[i] = &lane{passed: wait{done: make(chan error, 1)}}
	}
	return l
}

// destroy gives back what only the driver knows of. It runs on the device's thread.
func (l *loader) destroy(note func(what string, err error)) {
	for _, lane := range l.lanes {
		if lane.ready {
			note("loading", errors.Join(cu.DestroyEvent(&lane.passed.event), lane.stream.Destroy()))
		}
	}
}

// load writes the n numbers of t to dst, as numbers of type stored that are rounded to as.
// It returns when they are there.
func (l *loader) load(dst cu.DevicePtr, stored, as compute.DType, t compute.Tensor, n int) error {
	// Every type a piece passes through must fit in a lane.
	piece := l.bytes / max(t.DType.Size(), 4)
	pieces := (n + piece - 1) / piece
	workers := min(len(l.lanes), pieces)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			lane := l.lanes[i]
			lane.mu.Lock()
			defer lane.mu.Unlock()
			for p := i; p < pieces && errs[i] == nil; p += workers {
				lo, hi := p*piece, min((p+1)*piece, n)
				data := t.Data[lo*t.DType.Size() : hi*t.DType.Size()]
				errs[i] = l.piece(lane, dst+cu.DevicePtr(lo*stored.Size()), stored, as, data, t.DType, hi-lo)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// piece sends one piece through a lane.
func (l *loader) piece(a *lane, dst cu.DevicePtr, stored, as compute.DType, data []byte, dtype compute.DType, n int) error {
	rounded := as == compute.BF16 && stored == compute.F32 && dtype != compute.BF16 // and widened again
	if err := l.prepare(a, dtype != stored, rounded); err != nil {
		return err
	}
	copy(unsafe.Slice((*byte)(a.pinned), l.bytes), data)
	return l.runOn(a, "loading", func() error {
		arrives := a.raw
		if dtype == stored && !rounded {
			arrives = dst
		}
		if err := cu.MemcpyHtoDAsync(arrives, a.pinned, int64(len(data)), a.stream); err != nil || arrives == dst {
			return err
		}
		from, at := dtype, a.raw
		if rounded {
			if err := convert(compute.BF16, a.middle, from, at, n, a.stream); err != nil {
				return err
			}
			from, at = compute.BF16, a.middle
		}
		return convert(stored, dst, from, at, n, a.stream)
	})
}

func convert(to compute.DType, dst cu.DevicePtr, from compute.DType, src cu.DevicePtr, n int, s cu.Stream) error {
	return kernel(C.skald_copy(C.int(to), pointer(dst), C.int(from), pointer(src), C.int64_t(n), streamPointer(s)))
}

// prepare makes what a lane needs and does not have.
func (l *loader) prepare(a *lane, converts, rounds bool) (err error) {
	if !a.ready {
		err = l.d.do("a stream for loading", func() (err error) {
			if a.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
				return err
			}
			if a.passed.event, err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return errors.Join(err, a.stream.Destroy())
			}
			a.ready = true
			return nil
		})
	}
	if err == nil && a.pinned == nil {
		a.pinned, err = l.d.hostAlloc(l.bytes)
	}
	if err == nil && (converts || rounds) && a.raw == 0 {
		a.raw, err = l.d.alloc(int64(l.bytes), "loading weights")
	}
	if err == nil && rounds && a.middle == 0 {
		a.middle, err = l.d.alloc(int64(l.bytes), "loading weights")
	}
	return err
}

// run queues f on a stream and waits for it.
func (l *loader) run(what string, f func(s cu.Stream) error) error {
	a := l.lanes[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := l.prepare(a, false, false); err != nil {
		return err
	}
	return l.runOn(a, what, func() error { return f(a.stream) })
}

// runOn queues f on a lane's stream and waits for it, also when only a part of it could
// be queued.
func (l *loader) runOn(a *lane, what string, f func() error) error {
	failed := l.d.do(what, f)
	err := l.d.do(what, func() error {
		if err := a.passed.event.Record(a.stream); err != nil {
			return err
		}
		l.d.thread.waits = append(l.d.thread.waits, &a.passed)
		return nil
	})
	if err == nil {
		err = l.d.failed(what, <-a.passed.done)
	}
	if failed != nil {
		return failed
	}
	return err
}

func streamPointer(s cu.Stream) unsafe.Pointer { return unsafe.Pointer(s.C()) }
