package music3

import (
	"context"
	"errors"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// Need is the memory that a model takes on a device, in bytes.
type Need struct {
	InPlace int64 // weights that are read where they lie, in a mapping or in the program
	Private int64 // weights in forms of the device's own
	KVCache int64
	Songs   int64 // what the longest songs keep until they are rendered
	Scratch int64 // working memory of the stages
}

// Total is all of it.
func (n Need) Total() int64 { return n.InPlace + n.Private + n.KVCache + n.Songs + n.Scratch }

// Plan is what loading a model comes to.
type Plan struct {
	Need  Need
	Read  []Read // of the source, in the order in which Load asks for them
	Bytes int64  // that Load tells its progress of
}

// Read is a tensor, or a part of one, that Load or the stages read.
type Read struct {
	Component string
	Data      []byte
}

// Shapes is a source of tensors without data: those of a checkpoint that is not there.
func Shapes(c checkpoint.Config, dtype func(component string) checkpoint.DType) Source {
	s := shapes{specs: map[[2]string]checkpoint.Spec{}, dtype: dtype}
	for _, x := range checkpoint.Inventory(c) {
		s.specs[[2]string{x.Component, x.Name}] = x
	}
	return s
}

type shapes struct {
	specs map[[2]string]checkpoint.Spec
	dtype func(component string) checkpoint.DType
}

func (s shapes) Tensor(component, name string) (checkpoint.Tensor, bool) {
	x, ok := s.specs[[2]string{component, name}]
	return checkpoint.Tensor{Name: name, DType: s.dtype(component), Shape: x.Shape}, ok
}

// NewPlan works out what Load, NewFrameLoop and a renderer take for so many songs at once
// and positions of the frame loop's cache. It runs their own code against a device that
// only counts. The tensors of src need no data.
func NewPlan(dev compute.Device, src Source, c checkpoint.Config, p Precision, songs, positions int) (Plan, error) {
	d := &countingDevice{Device: dev}
	d.estimator, _ = dev.(compute.Estimator)
	var plan Plan
	l := &loader{ctx: context.Background(), dev: d, src: src, counting: d, progress: func(_ string, bytes int64) { plan.Bytes += bytes }}
	m, err := load(l, c, p)
	if err != nil {
		return Plan{}, err
	}
	plan.Read, plan.Need.InPlace, plan.Need.Private = d.read, d.inPlace, d.private

	loop, err := m.NewFrameLoop(songs, positions)
	if err != nil {
		return Plan{}, err
	}
	plan.Need.KVCache = d.caches
	a := &allocator{dev: d}
	m.cond.newBuffers(a, windowFrames)
	latents := Latents(c.ConditionEncoder, windowFrames)
	const maxSteps = 200 // a few rows among thousands
	m.flow.newBuffers(a, latents, 2, maxSteps)
	m.voc.newBuffers(a, latents)
	plan.Need.Scratch = d.buffers

	frames := min(MaxFrames, c.LanguageModel.MaxPositions, positions/2) // a frame takes two positions
	chunks := (frames + hopFrames - 1) / hopFrames
	samples := float64(frames) / m.FrameRate() * float64(m.SampleRate()) * 2
	plan.Need.Songs = int64(songs) * (int64(chunks)*d.bufferBytes(loop.chunks.dtype, hopFrames*loop.chunks.width) + 4*int64(samples))
	return plan, errors.Join(a.err, loop.Close())
}

// countingDevice counts what a device would take, and takes nothing.
type countingDevice struct {
	compute.Device
	estimator compute.Estimator // nil where the device has none: everything is its own

	inPlace, private, buffers, caches int64
	read                              []Read
}

func (d *countingDevice) reads(component string, t compute.Tensor) {
	if t.Data != nil {
		d.read = append(d.read, Read{component, t.Data})
	}
}

func (d *countingDevice) Load(t compute.Tensor, use compute.Use, as compute.DType) (compute.Weight, error) {
	inPlace, private := int64(0), int64(as.Size())
	for _, n := range t.Shape {
		private *= int64(n)
	}
	if d.estimator != nil {
		inPlace, private = d.estimator.WeightBytes(t, use, as)
	}
	if use != compute.UseColdTable { // of which few pages are read
		d.inPlace += inPlace
	}
	d.private += private
	return countedWeight{t.Shape, as, private}, nil
}

type countedWeight struct {
	shape   []int
	dtype   compute.DType
	private int64
}

func (w countedWeight) Shape() []int         { return w.shape }
func (w countedWeight) DType() compute.DType { return w.dtype }
func (w countedWeight) PrivateBytes() int64  { return w.private }

func (d *countingDevice) bufferBytes(t compute.DType, n int) int64 {
	if d.estimator != nil {
		return d.estimator.BufferBytes(t, n)
	}
	return int64(t.Size()) * int64(n)
}

func (d *countingDevice) NewBuffer(t compute.DType, n int) (compute.Buffer, error) {
	d.buffers += d.bufferBytes(t, n)
	return countedBuffer{t, n}, nil
}

type countedBuffer struct {
	dtype compute.DType
	n     int
}

func (b countedBuffer) DType() compute.DType            { return b.dtype }
func (b countedBuffer) Len() int                        { return b.n }
func (b countedBuffer) Slice(lo, hi int) compute.Buffer { return countedBuffer{b.dtype, hi - lo} }
func (countedBuffer) Free()                             {}

func (d *countingDevice) NewKVCache(c compute.KVConfig) (compute.KVCache, error) {
	if d.estimator != nil {
		d.caches += d.estimator.KVCacheBytes(c)
	} else {
		d.caches += c.Bytes()
	}
	return countedCache(c), nil
}

type countedCache compute.KVConfig

func (c countedCache) Config() compute.KVConfig { return compute.KVConfig(c) }
func (countedCache) Close() error               { return nil }

func (d *countingDevice) NewQueue() (compute.Queue, error) { return idleQueue{}, nil }

// idleQueue does nothing of what loading asks of a queue, and has nothing else.
type idleQueue struct{ compute.Queue }

func (idleQueue) Upload(compute.Buffer, []float32)   {}
func (idleQueue) UploadInts(compute.Buffer, []int32) {}
func (idleQueue) Sync() error                        { return nil }
func (idleQueue) Close() error                       { return nil }
