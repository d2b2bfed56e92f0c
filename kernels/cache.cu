// What goes into the KV cache, and rotary embeddings.
#include <type_traits>

#include "cache.cuh"

namespace skald {

constexpr int kWarps = 4;

// Rotates a head of float32 numbers that the lanes of a warp share:
//   a' = r(r(a*cos) + r(-b*sin)), b' = r(r(b*cos) + r(a*sin)).
template <class T>
__device__ __forceinline__ void rotate(float *head, const skald_rope_table &rope, int64_t position) {
  const int half = rope.dim / 2;
  const T *cos = static_cast<const T *>(rope.cos) + position * half, *sin = static_cast<const T *>(rope.sin) + position * half;
  for (int i = int(threadIdx.x) % 32; i < half; i += 32) {
    const float a = head[i], b = head[i + half], c = widen(cos[i]), s = widen(sin[i]);
    head[i] = rounded<T>(rounded<T>(a * c) + rounded<T>(-b * s));
    head[i + half] = rounded<T>(rounded<T>(b * c) + rounded<T>(a * s));
  }
}

struct Append {
  void *q;
  const void *k, *v;
  int q_heads, layer;
  const float *q_norm, *k_norm;
  float eps;
  skald_rope_table rope;
};

// A warp does one head of one row: of q in place, of k and v into the cache.
template <class T, class C>
__global__ void __launch_bounds__(kWarps * 32) append_kernel(const __grid_constant__ skald_cache cache, const __grid_constant__ Append a,
                                                             const __grid_constant__ skald_rows at, int32_t *fault) {
  SKALD_DYNAMIC_SHARED(raw);
  begin();
  const int d = cache.head_dim, lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x;
  const int head = int(blockIdx.y) * kWarps + warp;
  if (head >= a.q_heads + cache.heads) return;
  const int pos = at.pos[row];
  if (!row_exists(cache, at, row, pos, head == 0 && lane == 0 ? fault : nullptr)) return;
  if (a.rope.dim > 0 && pos >= a.rope.positions) {
    if (head == 0 && lane == 0) report(fault, SKALD_FAULT_POSITION, row, pos, 0);
    return;
  }
  float *mine = reinterpret_cast<float *>(raw) + warp * d;
  const bool query = head < a.q_heads;
  const T *in = query ? static_cast<const T *>(a.q) + (int64_t(row) * a.q_heads + head) * d
                      : static_cast<const T *>(a.k) + (int64_t(row) * cache.heads + head - a.q_heads) * d;
  const float *norm = query ? a.q_norm : a.k_norm;
  float squares = 0;
  for (int i = lane; i < d; i += 32) {
    const float v = widen(in[i]);
    mine[i] = v;
    squares += v * v;
  }
  if (norm) {
    const float factor = inverse_root(__fdiv_rn(warp_sum(squares), float(d)) + a.eps);
    for (int i = lane; i < d; i += 32) mine[i] = rounded<T>(rounded<T>(mine[i] * factor) * norm[i]);
  }
  __syncwarp();
  if (a.rope.dim > 0) rotate<T>(mine, a.rope, pos);
  __syncwarp();
  if (query) {
    T *out = static_cast<T *>(a.q) + (int64_t(row) * a.q_heads + head) * d;
    for (int i = lane; i < d; i += 32) out[i] = narrow<T>(mine[i]);
    return;
  }
  const int key_head = head - a.q_heads;
  const T *value = static_cast<const T *>(a.v) + (int64_t(row) * cache.heads + key_head) * d;
  C *keys = static_cast<C *>(cache.data) + key_at(cache, a.layer, block_of(cache, at, row, pos), key_head, pos % cache.block_size);
  C *values = keys + values_after(cache);
  for (int i = lane; i < d; i += 32) {
    keys[i] = narrow<C>(mine[i]);
    values[i] = narrow<C>(widen(value[i]));
  }
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32) rope_kernel(T *x, int64_t heads_of_all, int heads, int length, int d, const __grid_constant__ skald_rope_table rope) {
  begin();
  const int half = rope.dim / 2;
  const int64_t at = int64_t(blockIdx.x) * kWarps * 32 + threadIdx.x, head = at / half;
  const int i = int(at % half);
  if (head >= heads_of_all) return;
  const int64_t position = head / heads % length;
  T *p = x + head * d + i;
  const float a = widen(p[0]), b = widen(p[half]);
  const float c = widen(static_cast<const T *>(rope.cos)[position * half + i]), s = widen(static_cast<const T *>(rope.sin)[position * half + i]);
  p[0] = narrow<T>(rounded<T>(a * c) + rounded<T>(-b * s));
  p[half] = narrow<T>(rounded<T>(b * c) + rounded<T>(a * s));
}

// One block of every layer.
template <class P> __global__ void __launch_bounds__(256) copy_block_kernel(P *data, int64_t pieces, int64_t layer, int dst, int src) {
  begin();
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i >= pieces) return;
  P *at = data + blockIdx.y * layer;
  at[dst * pieces + i] = at[src * pieces + i];
}

inline bool rope_makes_sense(const skald_rope_table &r, int head_dim) { return r.dim >= 0 && r.dim % 2 == 0 && r.dim <= head_dim; }

}  // namespace skald

using namespace skald;

extern "C" int skald_append_kv(int t, const skald_cache *cache, int layer, void *q, const void *k, const void *v, int q_heads,
                               const float *q_norm, const float *k_norm, float eps, const skald_rope_table *rope,
                               const skald_rows *at, int32_t *fault, void *stream) {
  if (!cache_makes_sense(*cache, layer) || at->n < 0 || q_heads < 0 || at->max_blocks < 1 || !rope_makes_sense(*rope, cache->head_dim))
    return SKALD_INVALID;
  if (at->n == 0) return 0;
  const Append a{q, k, v, q_heads, layer, q_norm, k_norm, eps, *rope};
  const Grid g{dim3(unsigned(at->n), unsigned(blocks_of(q_heads + cache->heads, kWarps))), dim3(kWarps * 32), size_t(kWarps) * cache->head_dim * 4};
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return with_float(cache->dtype, [&](auto *c) {
      return launch("append_kv", g, stream, append_kernel<T, SKALD_TYPE(c)>, *cache, a, *at, fault);
    });
  });
}

extern "C" int skald_rope(int t, void *x, int batch, int length, int heads, int head_dim, const skald_rope_table *rope, void *stream) {
  if (batch < 0 || length < 0 || heads < 0 || !rope_makes_sense(*rope, head_dim) || (rope->dim > 0 && rope->positions < length))
    return SKALD_INVALID;
  const int64_t all = int64_t(batch) * length * heads;
  if (all == 0 || rope->dim == 0) return 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const Grid g{dim3(unsigned(blocks_of(all * (rope->dim / 2), kWarps * 32))), dim3(kWarps * 32), 0};
    return launch("rope", g, stream, rope_kernel<T>, static_cast<T *>(x), all, heads, length, head_dim, *rope);
  });
}

extern "C" int skald_copy_block(const skald_cache *cache, int dst, int src, void *stream) {
  if (!cache_makes_sense(*cache, 0) || dst < 0 || dst >= cache->blocks || src < 0 || src >= cache->blocks) return SKALD_INVALID;
  if (dst == src) return 0;
  const int64_t bytes = 2 * values_after(*cache) * (cache->dtype == SKALD_BF16 ? 2 : 4);
  const auto run = [&](auto *p) {
    const int64_t pieces = bytes / int64_t(sizeof *p);
    const Grid g{dim3(unsigned(blocks_of(pieces, 256)), unsigned(cache->layers)), dim3(256), 0};
    return launch("copy_block", g, stream, copy_block_kernel<SKALD_TYPE(p)>, static_cast<decltype(p)>(cache->data), pieces, pieces * cache->blocks, dst, src);
  };
  if (bytes % 16 == 0 && reinterpret_cast<uintptr_t>(cache->data) % 16 == 0) return run(static_cast<uint4 *>(nullptr));
  return run(static_cast<unsigned short *>(nullptr));
}
