package cpu

import (
	"fmt"

	"skald/host/compute"
)

// kvCache is one pool of blocks, [layers][blocks][keys, values][heads], in which the
// keys or values of one head lie as what they are multiplied by: in panels of 16 lanes.
//
//	keys:   [positions/16][HeadDim][16]    scores are sums over HeadDim
//	values: [HeadDim/16][positions][16]    the output is a sum over positions
//
// with zeros where a size is no multiple of 16. Of a BF16 cache the index of the sum goes
// in pairs, [../2][16][2]: a line of 64 bytes is one index of float32, or two of bfloat16.
type kvCache struct {
	device *device
	config compute.KVConfig
	floats []float32 // when F32
	bits   []uint16  // when BF16

	keyPanels, valuePanels int // of one head in one block
	keyPanel, valuePanel   int // numbers of one panel
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

// layoutKV is a cache without its memory.
func layoutKV(c compute.KVConfig) *kvCache {
	cache := &kvCache{config: c,
		keyPanels: ceilDiv(c.BlockSize, panelColumns), valuePanels: ceilDiv(c.HeadDim, panelColumns),
		keyPanel: c.HeadDim * panelColumns, valuePanel: c.BlockSize * panelColumns}
	if c.DType == compute.BF16 {
		cache.keyPanel, cache.valuePanel = roundUp(c.HeadDim, 2)*panelColumns, roundUp(c.BlockSize, 2)*panelColumns
	}
	return cache
}

func newKVCache(d *device, c compute.KVConfig) (compute.KVCache, error) {
	cache := layoutKV(c)
	cache.device = d
	if err := d.reserve(cache.bytes(), "a KV cache"); err != nil {
		return nil, err
	}
	if c.DType == compute.BF16 {
		cache.bits = make([]uint16, cache.numbers())
	} else {
		cache.floats = make([]float32, cache.numbers())
	}
	return cache, nil
}

func (c *kvCache) Config() compute.KVConfig { return c.config }

// Close gives the memory back.
func (c *kvCache) Close() error {
	if c.floats != nil || c.bits != nil {
		c.device.used.Add(-c.bytes())
		c.floats, c.bits = nil, nil
	}
	return nil
}

// block is how many numbers the keys and values of all heads take.
func (c *kvCache) block() int {
	return c.config.Heads * (c.keyPanels*c.keyPanel + c.valuePanels*c.valuePanel)
}

// numbers is the size of the memory: all blocks, and as much as kernels that take
// several panels at once may read behind the last.
func (c *kvCache) numbers() int {
	return c.config.Layers*c.config.Blocks*c.block() + cachedPanels*c.valuePanel
}

func (c *kvCache) bytes() int64 { return int64(c.numbers()) * int64(c.config.DType.Size()) }

// keys is where the keys of a head begin in a block.
func (c *kvCache) keys(layer, block, head int) int {
	return (layer*c.config.Blocks+block)*c.block() + head*c.keyPanels*c.keyPanel
}

// values is where the values of a head begin in a block.
func (c *kvCache) values(layer, block, head int) int {
	return c.keys(layer, block, c.config.Heads) + head*c.valuePanels*c.valuePanel
}

// write stores one head at one position of a block, rounding to the type of the cache.
func (c *kvCache) write(layer, block, head, pos int, key, value []float32, s *scratch) {
	keys := c.keys(layer, block, head) + pos/panelColumns*c.keyPanel
	values := c.values(layer, block, head)
	lane := pos % panelColumns
	if c.floats != nil {
		for i, v := range key {
			c.floats[keys+i*panelColumns+lane] = v
		}
		for ; len(value) > 0; values += c.valuePanel {
			n := min(panelColumns, len(value))
			copy(c.floats[values+pos*panelColumns:], value[:n])
			value = value[n:]
		}
		return
	}
	bits := grown(&s.rounded, len(key))
	s.narrow(bits, key)
	for i, b := range bits {
		c.bits[keys+pairAt(i, lane)] = b
	}
	s.narrow(bits, value)
	for i, b := range bits {
		c.bits[values+i/panelColumns*c.valuePanel+pairAt(pos, i%panelColumns)] = b
	}
}

// pairAt is where index i of a sum stands in a panel of pairs.
func pairAt(i, lane int) int { return (i/2*panelColumns+lane)*2 + i%2 }

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
	size := c.block()
	for layer := range c.config.Layers {
		to, from := c.keys(layer, dst, 0), c.keys(layer, src, 0)
		if c.floats != nil {
			copy(c.floats[to:to+size], c.floats[from:])
		} else {
			copy(c.bits[to:to+size], c.bits[from:])
		}
	}
}
