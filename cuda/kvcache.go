//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// kvCache is one pool of blocks; skald_kernels.h has its layout.
type kvCache struct {
	device *device
	config compute.KVConfig
	at     cu.DevicePtr
}

func (d *device) NewKVCache(c compute.KVConfig) (compute.KVCache, error) {
	if c.DType != compute.F32 && c.DType != compute.BF16 {
		return nil, fmt.Errorf("cuda: a KV cache cannot hold %v, only F32 or BF16", c.DType)
	}
	n := int64(1) << 50 / 8 // numbers that fit in any address space
	for _, size := range []int{c.Layers, c.Heads, c.HeadDim, c.BlockSize, c.Blocks} {
		if size <= 0 || size > 1<<31-1 || int64(size) > n {
			return nil, fmt.Errorf("cuda: impossible KV cache %+v", c)
		}
		n /= int64(size)
	}
	at, err := d.alloc(c.Bytes(), "a KV cache")
	if err != nil {
		return nil, err
	}
	return &kvCache{d, c, at}, nil
}

func (c *kvCache) Config() compute.KVConfig { return c.config }

func (c *kvCache) Close() error {
	at := c.at
	c.at = 0
	return c.device.free(at)
}

func (c *kvCache) c() C.skald_cache {
	return C.skald_cache{data: pointer(c.at), dtype: C.int32_t(c.config.DType), layers: C.int32_t(c.config.Layers),
		heads: C.int32_t(c.config.Heads), head_dim: C.int32_t(c.config.HeadDim),
		block_size: C.int32_t(c.config.BlockSize), blocks: C.int32_t(c.config.Blocks)}
}
