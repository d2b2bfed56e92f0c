// cache.cuh is where things lie in a KV cache.
#ifndef SKALD_CACHE_CUH
#define SKALD_CACHE_CUH

#include "numbers.cuh"

namespace skald {

// Numbers from the keys of a block to its values.
__host__ __device__ inline int64_t values_after(const skald_cache &c) { return int64_t(c.heads) * c.block_size * c.head_dim; }

// Where the key of one head at one position of a block begins.
__device__ inline int64_t key_at(const skald_cache &c, int layer, int block, int head, int position) {
  return (int64_t(layer) * c.blocks + block) * 2 * values_after(c) + (int64_t(head) * c.block_size + position) * c.head_dim;
}

// The block that holds a position of a row's sequence.
__device__ inline int block_of(const skald_cache &c, const skald_rows &at, int row, int position) {
  return at.blocks[int64_t(at.seq[row]) * at.max_blocks + position / c.block_size];
}

// Whether a row's position, sequence and block exist. fault may be null.
__device__ inline bool row_exists(const skald_cache &c, const skald_rows &at, int row, int position, int32_t *fault) {
  if (position < 0 || position / c.block_size >= at.max_blocks) {
    report(fault, SKALD_FAULT_POSITION, row, position, 0);
    return false;
  }
  const int seq = at.seq[row];
  if (seq < 0 || seq >= at.sequences) {
    report(fault, SKALD_FAULT_SEQUENCE, row, seq, 0);
    return false;
  }
  const int block = block_of(c, at, row, position);
  if (block < 0 || block >= c.blocks) {
    report(fault, SKALD_FAULT_BLOCK, row, seq, block);
    return false;
  }
  return true;
}

inline bool cache_makes_sense(const skald_cache &c, int layer) {
  return c.layers > 0 && c.heads > 0 && c.head_dim > 0 && c.block_size > 0 && c.blocks > 0 && layer >= 0 && layer < c.layers;
}

}  // namespace skald

#endif
