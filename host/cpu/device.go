package cpu

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"skald/host/compute"
)

// Options configure a device. The zero value is a good choice.
type Options struct {
	// Threads is the number of cores to use at most; 0 means GOMAXPROCS, which
	// respects the limits of a container.
	Threads int

	// Level is the instruction set to use: go for portable code; avx2, avx512,
	// avx512bf16 or amx. Empty means what the environment variable SKALD_CPU says,
	// or else the fastest that the machine has.
	Level string

	// PackBytes bounds what is packed when it is loaded. Vector kernels read
	// matrices in panels. A matrix whose panels take at most this many bytes gets
	// them at once and keeps them, in private memory; the panels of a larger one are
	// made part by part inside each operation, from the mapping. A negative number
	// means never. 0 means what is good at the level: 4 MiB, which is small beside the
	// weights of a large model, and at avx512bf16 matrices of bfloat16 of any size
	// while memory lasts, for a few rows are multiplied several times as fast then; at
	// amx these are never packed. None of this changes a bit of the results.
	PackBytes int64
}

const defaultPackBytes = 4 << 20

// device is the processor with its pool of workers.
type device struct {
	pool    *pool
	threads int
	level   level
	kernels kernels
	pack    int64        // Options.PackBytes
	used    atomic.Int64 // bytes handed out

	mu     sync.Mutex
	closed bool
}

// New returns the processor as a device. Close ends its worker goroutines.
func New(o Options) (compute.Device, error) {
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if threads < 1 || threads > 4096 {
		return nil, fmt.Errorf("cpu: %d threads, want 1 to 4096, or 0 for all cores", o.Threads)
	}
	l, err := chooseLevel(o.Level)
	if err != nil {
		return nil, err
	}
	d := &device{threads: threads, level: l, kernels: machineKernels(l), pack: o.PackBytes}
	d.pool = newPool(threads, &d.kernels)
	return d, nil
}

func (d *device) Info() compute.Info {
	detail := "level " + string(d.level) + " (" + d.level.note() + ")"
	return compute.Info{Kind: "cpu", Name: processorName(), Detail: runtime.GOARCH + ", " + detail, Threads: d.threads}
}

func (d *device) Memory() compute.MemoryInfo {
	m := machineMemory()
	m.Used = d.used.Load()
	return m
}

func (d *device) Load(t compute.Tensor, use compute.Use, as compute.DType) (compute.Weight, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	w, err := loadWeight(t, use, as, &d.kernels)
	if err != nil {
		return nil, err
	}
	if use == compute.UseLinear {
		d.packMatrix(w)
	}
	d.used.Add(w.private)
	return w, nil
}

// packMatrix gives w a second form, if that is what its products are fastest with.
func (d *device) packMatrix(w *weight) {
	switch d.packed(w.shape, w.bits != nil, w.dtype, w.private == 0) {
	case asPairs:
		if d.pack != 0 || hasRoom(2*pairCount(w.shape)) {
			w.pairs = d.kernels.packPairs(w)
			w.private += 2 * pairCount(w.shape)
		}
	case asPanels:
		w.panels = d.packAll(w)
		w.private += panelBytes(w.shape)
	}
}

// packing is a second form of a matrix.
type packing uint8

const (
	unpacked packing = iota
	asPairs
	asPanels
)

// packed tells which second form a matrix of that shape gets.
func (d *device) packed(shape []int, bits bool, as compute.DType, inPlace bool) packing {
	k := &d.kernels
	switch {
	case bits && k.bf16Linear != nil && k.packPairs == nil: // multiplied as they lie
	case bits && k.bf16Linear != nil && as == compute.BF16:
		if inPlace && (d.pack == 0 || 2*pairCount(shape) <= d.pack) { // else there is a copy already
			return asPairs
		}
	case k.panels.there():
		most := d.pack
		if most == 0 {
			most = defaultPackBytes
		}
		if panelBytes(shape) <= most {
			return asPanels
		}
	}
	return unpacked
}

func (d *device) NewBuffer(t compute.DType, n int) (compute.Buffer, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	if t != compute.F32 && t != compute.BF16 && t != compute.I32 {
		return nil, fmt.Errorf("cpu: a buffer cannot hold %v, only F32, BF16 or I32", t)
	}
	if n < 0 || n > math.MaxInt/8 {
		return nil, fmt.Errorf("cpu: a buffer cannot hold %d numbers", n)
	}
	if err := d.reserve(4*int64(n), "a buffer"); err != nil {
		return nil, err
	}
	return newBuffer(d, t, n), nil
}

func (d *device) NewKVCache(c compute.KVConfig) (compute.KVCache, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := checkKVConfig(c); err != nil {
		return nil, err
	}
	return newKVCache(d, c)
}

func (d *device) NewQueue() (compute.Queue, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	return newQueue(d.pool), nil
}

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.pool.close()
	}
	return nil
}

func (d *device) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	return nil
}

// reserve counts bytes as used. It refuses what the machine could never hold, where
// make would end the program.
func (d *device) reserve(bytes int64, what string) error {
	total := machineMemory().Total
	if used := d.used.Add(bytes); total > 0 && used > total {
		d.used.Add(-bytes)
		return fmt.Errorf("cpu: no memory for %s of %d bytes: %d of %d in use", what, bytes, used-bytes, total)
	}
	return nil
}
