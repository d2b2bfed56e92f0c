package music3

import (
	"fmt"

	"skald/host/compute"
)

// kvBlockSize is the number of positions in a block of the language model's cache.
// Small blocks waste less at a sequence's end; large ones mean shorter tables.
const kvBlockSize = 32

// blockPool hands out the blocks of one KV cache. It is not safe for concurrent use.
type blockPool struct {
	cache compute.KVCache
	free  []int32
}

func newBlockPool(cache compute.KVCache) *blockPool {
	n := cache.Config().Blocks
	p := &blockPool{cache: cache, free: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	return p
}

func blocksFor(positions int) int { return (positions + kvBlockSize - 1) / kvBlockSize }

func (p *blockPool) take() (int32, error) {
	if len(p.free) == 0 {
		return 0, fmt.Errorf("music3: all %d blocks of the KV cache are taken", p.cache.Config().Blocks)
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return b, nil
}

// sequence is one row's place in the cache: its blocks in order, of which the first
// `shared` belong to the prefix cache.
type sequence struct {
	blocks []int32
	shared int
}

// reserve takes blocks until n positions fit, so that a song that was admitted never
// runs out.
func (p *blockPool) reserve(s *sequence, n int) error {
	for len(s.blocks) < blocksFor(n) {
		b, err := p.take()
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, b)
	}
	return nil
}

func (p *blockPool) release(s *sequence) {
	p.free = append(p.free, s.blocks[min(s.shared, len(s.blocks)):]...)
	*s = sequence{}
}

// fillerPrefix caches the keys and values of the unconditional prompt. That prompt is
// the first token, then the filler at every place but the last two; so all songs
// share one prefix, only its length differs, and full blocks of it are never written
// again.
type fillerPrefix struct {
	first  int32
	seq    sequence
	filled int // positions computed so far
}
