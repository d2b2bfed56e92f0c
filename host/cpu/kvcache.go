package cpu

import (
	"fmt"

	"skald/host/compute"
)

// kvCache is one pool of blocks, [layers][blocks][keys, values][heads][position][HeadDim],
// so that what one head of one block needs lies together.
type kvCache struct {
	device *device
	config compute.KVConfig
	floats []float32 // when F32
	bits   []uint16  // when BF16
}

func checkKVConfig(c compute.KVConfig) error {
	if c.DType != compute.F32 && c.DType != compute.BF16 {
		return fmt.Errorf("cpu: a KV cache cannot hold %v, only F32 or BF16", c.DType)
	}
	n := int64(1) << 50 / 8 // numbers that fit in any address space
	for _, d := range []int{c.Layers, c.Heads, c.HeadDim, c.BlockSize, c.Blocks} {
		if d <= 0 || int64(d) > n {
			return fmt.Errorf("cpu: impossible KV cache %+v", c)
		}
		n /= int64(d)
	}
	return nil
}

func newKVCache(d *device, c compute.KVConfig) *kvCache {
	cache := &kvCache{device: d, config: c}
	n := 2 * c.Layers * c.Heads * c.HeadDim * c.BlockSize * c.Blocks
	if c.DType == compute.BF16 {
		cache.bits = make([]uint16, n)
	} else {
		cache.floats = make([]float32, n)
	}
	return cache
}

func (c *kvCache) Config() compute.KVConfig { return c.config }

// Close gives the memory back.
func (c *kvCache) Close() error {
	if c.floats != nil || c.bits != nil {
		c.device.used.Add(-c.config.Bytes())
		c.floats, c.bits = nil, nil
	}
	return nil
}

// offset is where the keys of a head begin in a block; the values begin values()
// later.
func (c *kvCache) offset(layer, block, head int) int {
	g := &c.config
	return ((layer*g.Blocks+block)*2*g.Heads + head) * g.BlockSize * g.HeadDim
}

func (c *kvCache) values() int {
	return c.config.Heads * c.config.BlockSize * c.config.HeadDim
}

// read returns n numbers from offset at, widened into buf unless they are float32.
func (c *kvCache) read(at, n int, buf []float32) []float32 {
	if c.floats != nil {
		return c.floats[at : at+n]
	}
	widen(buf[:n], c.bits[at:at+n])
	return buf[:n]
}

// write stores src from offset at on, rounding to the type of the cache.
func (c *kvCache) write(at int, src []float32, k *kernels) {
	if c.floats != nil {
		copy(c.floats[at:], src)
		return
	}
	k.narrow(c.bits[at:at+len(src)], src)
}

func (o *operands) cache(b compute.KVCache, layer int) *kvCache {
	own, ok := b.(*kvCache)
	if !ok {
		o.fail("cache is %T, want a KV cache of this device", b)
	}
	if own.floats == nil && own.bits == nil {
		o.fail("the KV cache is closed")
	}
	if layer < 0 || layer >= own.config.Layers {
		o.fail("layer is %d, the cache has %d", layer, own.config.Layers)
	}
	return own
}

// places is compute.Rows unwrapped.
type places struct {
	pos, seq, blocks []int32
	maxBlocks        int
}

// rows unwraps at and checks that every place exists in the cache. What the buffers
// hold is data, so a wrong number is an error and not a panic.
func (o *operands) rows(at compute.Rows, c *kvCache) (places, error) {
	o.size("Rows.N", at.N)
	if at.MaxBlocks <= 0 {
		o.fail("Rows.MaxBlocks is %d", at.MaxBlocks)
	}
	p := places{pos: o.ints("Rows.Pos", at.Pos, at.N), seq: o.ints("Rows.Seq", at.Seq, at.N), maxBlocks: at.MaxBlocks}
	table := o.buffer("Rows.Blocks", at.Blocks)
	p.blocks = o.ints("Rows.Blocks", at.Blocks, table.Len())
	for i, pos := range p.pos {
		last := int(pos) / c.config.BlockSize
		if pos < 0 || last >= at.MaxBlocks {
			return p, fmt.Errorf("cpu: %s: row %d is at position %d, a sequence has %d blocks of %d", o.op, i, pos, at.MaxBlocks, c.config.BlockSize)
		}
		first := int(p.seq[i]) * at.MaxBlocks
		if first < 0 || first+last >= len(p.blocks) {
			return p, fmt.Errorf("cpu: %s: row %d belongs to sequence %d, the table of blocks has %d", o.op, i, p.seq[i], len(p.blocks)/at.MaxBlocks)
		}
		for _, b := range p.blocks[first : first+last+1] {
			if b < 0 || int(b) >= c.config.Blocks {
				return p, fmt.Errorf("cpu: %s: sequence %d has block %d, the cache has %d", o.op, p.seq[i], b, c.config.Blocks)
			}
		}
	}
	return p, nil
}

// block is the cache's block that holds position pos of row i's sequence.
func (p *places) block(i, pos, blockSize int) int {
	return int(p.blocks[int(p.seq[i])*p.maxBlocks+pos/blockSize])
}

func (q *queue) CopyBlock(cache compute.KVCache, dst, src int) {
	o := operands{op: "CopyBlock"}
	c := o.cache(cache, 0)
	if dst < 0 || dst >= c.config.Blocks || src < 0 || src >= c.config.Blocks {
		o.fail("from block %d to %d, the cache has %d", src, dst, c.config.Blocks)
	}
	if q.err != nil {
		return
	}
	size := 2 * c.values()
	for layer := range c.config.Layers {
		to, from := c.offset(layer, dst, 0), c.offset(layer, src, 0)
		if c.floats != nil {
			copy(c.floats[to:to+size], c.floats[from:])
		} else {
			copy(c.bits[to:to+size], c.bits[from:])
		}
	}
}
