package music3

import (
	"context"
	"fmt"
	"math"

	"skald/host/compute"
)

// Renderer is the acoustic half: it turns windows of frames into sound, one at a time,
// for any number of songs. Its memory is shared by all of them. It is used by one
// goroutine at a time.
type Renderer struct {
	model *Model
	queue compute.Queue

	shape     shape
	flow      *flowBuffers
	vocoder   *vocoderBuffers
	condition conditionBuffers
}

// shape is what the renderer's memory was made for.
type shape struct{ frames, latents, batch, steps int }

// Track is one song in the renderer: what its windows have in common and hand on.
type Track struct {
	o      RenderOptions
	steps  []eulerStep
	guided bool

	latents, cond compute.Buffer // carried over from the previous window
	carried       int            // latents in them
}

// RenderOptions say how a song is rendered.
type RenderOptions struct {
	Steps    int     // Euler steps
	Guidance float64 // guidance scale; 1 skips the unconditional pass
	// Noise fills dst [channels, latents] with the window's normal draw.
	Noise func(window int, dst []float32)
	// Progress is called after every step and block with the number done and the
	// total of this window's stage.
	Progress func(stage RenderStage, window, done, total int)
	// Trace, when not nil, receives the window's tensors; v is valid during the call.
	Trace func(name string, shape []int, v []float32, t compute.DType) error
}

// RenderStage is a part of a window's work.
type RenderStage uint8

// The two stages of a window.
const (
	StageFlow RenderStage = iota
	StageVocoder
)

// NewRenderer makes a renderer. Its memory is taken when the first window tells its
// length.
func (m *Model) NewRenderer() (*Renderer, error) {
	q, err := m.dev.NewQueue()
	if err != nil {
		return nil, err
	}
	return &Renderer{model: m, queue: q}, nil
}

// NewTrack begins a song.
func (m *Model) NewTrack(o RenderOptions) (*Track, error) {
	t := &Track{o: o, steps: schedule(o.Steps, m.Config.Scheduler), guided: !isClose(o.Guidance, 1)}
	if m.Precision.Acoustic() == compute.BF16 {
		t.steps = rounded(t.steps)
	}
	a := &allocator{dev: m.dev}
	t.latents = a.buffer(m.flow.dtype, carryLatents*m.flow.cfg.InChannels)
	t.cond = a.buffer(m.flow.dtype, carryLatents*m.flow.cfg.ConditionDim)
	if a.err != nil {
		t.Release()
		return nil, a.err
	}
	return t, nil
}

// Release frees the song's memory.
func (t *Track) Release() {
	for _, b := range []compute.Buffer{t.latents, t.cond} {
		if b != nil {
			b.Free()
		}
	}
}

// isClose is Python's math.isclose with its default relative tolerance.
func isClose(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b))
}

// Sync waits for the queue and returns, then forgets, a failure of the device.
func (r *Renderer) Sync() error { return r.queue.Sync() }

// Close frees the renderer's memory.
func (r *Renderer) Close() error {
	r.freeBuffers()
	return r.queue.Close()
}

func (r *Renderer) freeBuffers() {
	if r.flow != nil {
		r.flow.free()
	}
	if r.vocoder != nil {
		r.vocoder.free()
	}
	c := r.condition
	for _, b := range []compute.Buffer{c.frames, c.mixed, c.projected, c.resized} {
		if b != nil {
			b.Free()
		}
	}
	r.flow, r.vocoder, r.condition, r.shape = nil, nil, conditionBuffers{}, shape{}
}

// fit makes the memory fit a window; most windows have the same shape.
func (r *Renderer) fit(t *Track, w Window) error {
	want := shape{frames: w.End - w.Start, latents: w.Latents, batch: 1, steps: t.o.Steps}
	if t.guided {
		want.batch = 2
	}
	if r.shape == want {
		return nil
	}
	r.freeBuffers()
	m, a := r.model, &allocator{dev: r.model.dev}
	r.condition = m.cond.newBuffers(a, want.frames)
	r.flow = m.flow.newBuffers(a, want.latents, want.batch, want.steps)
	r.vocoder = m.voc.newBuffers(a, want.latents)
	if a.err != nil {
		return a.err
	}
	if err := m.flow.timeTokens(r.queue, a, r.flow, t.steps); err != nil {
		return err
	}
	r.shape = want
	return nil
}

// Denoise turns one window of a voice's frames into latents. A song's windows must come
// in order, each followed at once by its Decode.
func (r *Renderer) Denoise(ctx context.Context, t *Track, v *Voice, w Window) error {
	if err := r.fit(t, w); err != nil {
		return err
	}
	if err := r.encodeCondition(t, v, w); err != nil {
		return err
	}
	return r.denoise(ctx, t, w)
}

// encodeCondition computes the window's condition and splices in the carried one.
func (r *Renderer) encodeCondition(t *Track, v *Voice, w Window) error {
	m, q, b := r.model, r.queue, r.flow
	width := m.cond.cfg.Layers * m.cond.cfg.HiddenDim
	for f := w.Start; f < w.End; {
		chunk, at := v.store[f/hopFrames], f%hopFrames
		n := min(hopFrames-at, w.End-f)
		q.Copy(r.condition.frames.Slice((f-w.Start)*width, (f-w.Start+n)*width), chunk.whole.Slice(at*width, (at+n)*width))
		f += n
	}
	m.cond.forward(q, b.cond, r.condition, w.End-w.Start)
	if n := min(t.carried, w.Latents) * m.flow.cfg.ConditionDim; n > 0 {
		q.Copy(b.cond.Slice(0, n), t.cond.Slice(0, n))
	}
	m.flow.setCondition(q, b)
	return r.trace(t, w, "cond", b.cond, w.Latents, m.flow.cfg.ConditionDim, false)
}

// denoise draws the window's noise and takes all Euler steps.
func (r *Renderer) denoise(ctx context.Context, t *Track, w Window) error {
	m, q, b := r.model, r.queue, r.flow
	x := m.flow.cfg.InChannels
	noise := make([]float32, x*w.Latents)
	t.o.Noise(w.Index, noise)
	q.Upload(b.x, transpose(noise, x, w.Latents))
	if err := r.trace(t, w, "noise", b.x, w.Latents, x, true); err != nil {
		return err
	}
	overlap := min(t.carried, w.Latents) * x
	begin, carry := b.x.Slice(0, overlap), t.latents.Slice(0, overlap)
	prompt := b.noise.Slice(0, overlap)
	q.Copy(prompt, begin)
	for k, s := range t.steps {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if overlap > 0 {
			q.Blend(begin, prompt, carry, s.noiseWeight, s.t)
		}
		m.flow.forward(q, b, k)
		var unconditional compute.Buffer
		if t.guided {
			unconditional = b.velocityNil
		}
		q.EulerStep(b.x, b.velocity, unconditional, float32(t.o.Guidance), s.dt)
		if k == 0 {
			if err := r.traceFirstStep(t, w); err != nil {
				return err
			}
		}
		if err := q.Sync(); err != nil {
			return err
		}
		t.o.Progress(StageFlow, w.Index, k+1, len(t.steps))
	}
	q.Copy(begin, carry)
	if err := r.checkFinite(b); err != nil {
		return fmt.Errorf("window %d: %w", w.Index, err)
	}
	if err := r.trace(t, w, "latents", b.x, w.Latents, x, true); err != nil {
		return err
	}
	lo, hi := carrySpan(w.Latents)
	if t.carried = hi - lo; t.carried > 0 {
		c := m.flow.cfg.ConditionDim
		q.Copy(t.latents.Slice(0, t.carried*x), b.x.Slice(lo*x, hi*x))
		q.Copy(t.cond.Slice(0, t.carried*c), b.cond.Slice(lo*c, hi*c))
	}
	return q.Sync()
}

func (r *Renderer) checkFinite(b *flowBuffers) error {
	r.queue.Finite(b.finite, b.x)
	var at [1]int32
	if err := r.queue.DownloadInts(at[:], b.finite); err != nil {
		return err
	}
	if at[0] != 0 {
		return &NonFiniteError{What: fmt.Sprintf("latent %d is not finite", at[0]-1)}
	}
	return nil
}

func (r *Renderer) traceFirstStep(t *Track, w Window) error {
	b, x := r.flow, r.model.flow.cfg.InChannels
	if err := r.trace(t, w, "velocity_cond", b.velocity, w.Latents, x, true); err != nil {
		return err
	}
	if t.guided {
		if err := r.trace(t, w, "velocity_uncond", b.velocityNil, w.Latents, x, true); err != nil {
			return err
		}
	}
	return r.trace(t, w, "latents_step1", b.x, w.Latents, x, true)
}

// Decode runs the vocoder over the latents that Denoise left and returns the window's
// samples, left and right, before cropping.
func (r *Renderer) Decode(ctx context.Context, t *Track, w Window) (wave [2][]float32, err error) {
	m, q := r.model, r.queue
	err = m.voc.forward(q, r.vocoder, r.flow.x, w.Latents, func(done, blocks int) error {
		if err := q.Sync(); err != nil {
			return err
		}
		t.o.Progress(StageVocoder, w.Index, done, blocks)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	if err != nil {
		return wave, err
	}
	n := m.voc.Samples(w.Latents)
	both := make([]float32, 2*n)
	if err := q.Download(both, r.vocoder.wave); err != nil {
		return wave, err
	}
	if t.o.Trace != nil {
		if err := t.o.Trace(fmt.Sprintf("window%d.wave", w.Index), []int{2, n}, both, m.voc.dtype); err != nil {
			return wave, err
		}
	}
	return [2][]float32{both[:n], both[n:]}, nil
}

// trace shows a buffer [rows, cols], transposed when the reference holds channels
// first.
func (r *Renderer) trace(t *Track, w Window, name string, b compute.Buffer, rows, cols int, flip bool) error {
	if t.o.Trace == nil {
		return nil
	}
	v := make([]float32, rows*cols)
	if err := r.queue.Download(v, b); err != nil {
		return err
	}
	if flip {
		v, rows, cols = transpose(v, rows, cols), cols, rows
	}
	return t.o.Trace(fmt.Sprintf("window%d.%s", w.Index, name), []int{rows, cols}, v, r.model.flow.dtype)
}
