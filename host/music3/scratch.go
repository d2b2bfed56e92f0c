package music3

import (
	"fmt"
	"sync"

	"skald/host/compute"
)

// What the frame loop and the Euler steps need again and again is made once and kept,
// so that they allocate nothing.

// views remembers slices of long-lived buffers.
type views map[view]compute.Buffer

type view struct {
	of     compute.Buffer
	lo, hi int
}

// of returns b.Slice(lo, hi), the same one every time.
func (v views) of(b compute.Buffer, lo, hi int) compute.Buffer {
	key := view{b, lo, hi}
	s, ok := v[key]
	if !ok {
		s = b.Slice(lo, hi)
		v[key] = s
	}
	return s
}

// group holds the products of one call of Queue.Linear; the device has read them when
// the call returns.
type group struct{ list []compute.Linear }

func (g *group) of(products ...compute.Linear) []compute.Linear {
	g.list = append(g.list[:0], products...)
	return g.list
}

// chunk holds the hidden states of hopFrames frames.
type chunk struct {
	whole  compute.Buffer            // [hopFrames, B*H]
	frames [hopFrames]compute.Buffer // its rows
}

// chunkPool keeps chunks for the next song. The renderer gives them back while the
// frame loop takes others.
type chunkPool struct {
	dev   compute.Device
	dtype compute.DType
	width int // B*H
	most  int // free ones to keep

	mu   sync.Mutex
	free []*chunk
}

func (p *chunkPool) take() (*chunk, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c, nil
	}
	whole, err := p.dev.NewBuffer(p.dtype, hopFrames*p.width)
	if err != nil {
		return nil, fmt.Errorf("music3: memory for the hidden states of %d frames: %w", hopFrames, err)
	}
	c := &chunk{whole: whole}
	for i := range c.frames {
		c.frames[i] = whole.Slice(i*p.width, (i+1)*p.width)
	}
	return c, nil
}

func (p *chunkPool) put(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < p.most {
		p.free = append(p.free, c)
		return
	}
	c.whole.Free()
}

func (p *chunkPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.free {
		c.whole.Free()
	}
	p.free, p.most = nil, 0
}
