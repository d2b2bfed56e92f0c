package music3

import (
	"errors"

	"skald/host/compute"
)

// Stages runs parts of a model by themselves, to measure them. Each method prepares a
// stage of a given size, with inputs of zeros where their values do not matter, and
// returns a function that runs it once and waits for it.
type Stages struct {
	m     *Model
	q     compute.Queue
	loops []*FrameLoop
}

// NewStages prepares to run a model's stages.
func (m *Model) NewStages() (*Stages, error) {
	q, err := m.dev.NewQueue()
	if err != nil {
		return nil, err
	}
	return &Stages{m: m, q: q}, nil
}

// Close frees the queues.
func (s *Stages) Close() error {
	errs := []error{s.q.Close()}
	for _, l := range s.loops {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Decode is a step of the language model without its head: one new token for each of
// `rows` sequences of kv earlier positions.
func (s *Stages) Decode(rows, kv int) (run func() error, err error) {
	return s.forward(rows, 1, kv)
}

// Prefill is the language model over `rows` prompts of n tokens.
func (s *Stages) Prefill(rows, n int) (run func() error, err error) {
	return s.forward(rows, n, 0)
}

// forward runs n tokens of each sequence behind kv earlier positions, in passes of at
// most prefillRows rows when there is more than one token.
func (s *Stages) forward(sequences, n, kv int) (run func() error, err error) {
	lm, a := s.m.lm, &allocator{dev: s.m.dev}
	perSequence := blocksFor(kv + n)
	cache, err := s.m.dev.NewKVCache(lm.kvConfig(sequences * perSequence))
	if err != nil {
		return nil, err
	}
	pass := sequences * n
	if n > 1 {
		pass = min(pass, prefillRows)
	}
	b := lm.newBuffers(a, pass)
	var pos, seq, blocks []int32
	for i := range sequences * n {
		pos, seq = append(pos, int32(kv+i%n)), append(seq, int32(i/n))
	}
	for i := range sequences * perSequence {
		blocks = append(blocks, int32(i))
	}
	at := compute.Rows{
		Pos: a.buffer(compute.I32, len(pos)), Seq: a.buffer(compute.I32, len(seq)),
		Blocks: a.buffer(compute.I32, len(blocks)), MaxBlocks: perSequence,
	}
	if a.err != nil {
		return nil, a.err
	}
	s.q.UploadInts(at.Pos, pos)
	s.q.UploadInts(at.Seq, seq)
	s.q.UploadInts(at.Blocks, blocks)
	return func() error {
		for lo := 0; lo < len(pos); lo += pass {
			hi := min(lo+pass, len(pos))
			rows := at
			rows.N, rows.Pos, rows.Seq = hi-lo, at.Pos.Slice(lo, hi), at.Seq.Slice(lo, hi)
			s.q.Zero(b.h)
			lm.forward(s.q, b.cut(lm.cfg, hi-lo), cache, rows)
		}
		return s.q.Sync()
	}, nil
}

// Head is the sliced head over `rows` hidden states.
func (s *Stages) Head(rows int) (run func() error, err error) {
	lm, a := s.m.lm, &allocator{dev: s.m.dev}
	n := lm.cfg.AudioCodebookSize
	hidden, logits := a.buffer(lm.dtype, rows*lm.cfg.HiddenSize), a.buffer(lm.dtype, rows*(n+1))
	if a.err != nil {
		return nil, a.err
	}
	s.q.Zero(hidden)
	end := logits.Slice(n, logits.Len())
	var g group
	return func() error {
		lm.head(s.q, logits, end, hidden, rows, &g)
		return s.q.Sync()
	}, nil
}

// Depth is the residual half of a frame of the given number of songs: all passes of the
// depth decoder, heads and draws.
func (s *Stages) Depth(songs int) (run func() error, err error) {
	l, err := s.m.NewFrameLoop(songs, kvBlockSize)
	if err != nil {
		return nil, err
	}
	s.loops = append(s.loops, l)
	l.queue.Zero(l.hidden)
	l.queue.UploadInts(l.codes, make([]int32, l.codes.Len()))
	l.queue.UploadInts(l.seeds, make([]int32, l.seeds.Len()))
	l.queue.UploadInts(l.iterations, make([]int32, l.iterations.Len()))
	part := l.residualPart(songs, false, nil)
	return func() error {
		part(l.queue)
		return l.queue.Sync()
	}, nil
}

// Flow is one pass of the flow transformer over `rows` (1 or 2) sequences of L latents;
// without blocks it is only what does not repeat with every layer.
func (s *Stages) Flow(rows, latents int, blocks bool) (run func() error, err error) {
	f, a := *s.m.flow, &allocator{dev: s.m.dev}
	b := f.newBuffers(a, latents, rows, 1)
	if a.err != nil {
		return nil, a.err
	}
	if err := f.timeTokens(s.q, a, b, []eulerStep{{t: 0.3}}); err != nil {
		return nil, err
	}
	for _, x := range []compute.Buffer{b.x, b.cond} {
		s.q.Zero(x)
	}
	f.setCondition(s.q, b)
	if !blocks {
		f.blocks = nil
	}
	return func() error {
		f.forward(s.q, b, 0)
		return s.q.Sync()
	}, nil
}

// Vocoder decodes L latents.
func (s *Stages) Vocoder(latents int) (run func() error, err error) {
	v, a := s.m.voc, &allocator{dev: s.m.dev}
	b, x := v.newBuffers(a, latents), a.buffer(v.dtype, latents*v.cfg.LatentChannels)
	if a.err != nil {
		return nil, a.err
	}
	s.q.Zero(x)
	return func() error {
		return v.forward(s.q, b, x, latents, func(int, int) error { return s.q.Sync() })
	}, nil
}

// Condition encodes n frames.
func (s *Stages) Condition(frames int) (run func() error, err error) {
	e, a := s.m.cond, &allocator{dev: s.m.dev}
	b := e.newBuffers(a, frames)
	cond := a.buffer(s.m.flow.dtype, Latents(e.cfg, frames)*e.cfg.OutDim)
	if a.err != nil {
		return nil, a.err
	}
	s.q.Zero(b.frames)
	return func() error {
		e.forward(s.q, cond, b, frames)
		return s.q.Sync()
	}, nil
}
