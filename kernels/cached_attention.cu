// Attention of single rows over many keys: over the KV cache, and, for sizes that
// full_attention.cu has no kernel for, over a whole sequence.
//
// Keys go in ranges of kRange positions. A range gives for each query head its largest
// score, the sum of its weights and the weighted sum of its values; the ranges are combined
// in order. So it does not matter whether one block does all ranges of a row or many do one
// each. A block does up to four query heads that share a key head.
#include <type_traits>

#include "cache.cuh"

namespace skald {

constexpr int kRange = 256, kThreads = 128, kWarps = kThreads / 32;
constexpr int kSpan = 128;              // numbers of a head that 16 lanes take at once
constexpr int kGroups = kThreads / 16;  // keys at once
constexpr int kAhead = 4;               // loads of each thread under way

// Where keys come from. A row is one query of all heads.
struct Keys {
  skald_cache cache;  // data is null: dense keys
  skald_rows at;
  int32_t layer;
  const void *k, *v;
  int32_t length, heads, head_dim;
};

// What a range gives, combined with what came before it.
struct Running {
  float top, total;
};

// How what was summed up to now and what is new are to be weighted.
__device__ __forceinline__ void combine(Running &r, float top, float total, float &keep, float &take) {
  const float both = fmaxf(r.top, top);
  keep = expf(r.top - both);
  take = expf(top - both);
  r.total = r.total * keep + total * take;
  r.top = both;
}

// How many keys a row sees, or 0 after a fault. All threads of the block get the answer.
__device__ inline int keys_of(const Keys &keys, int row, int32_t *fault) {
  if (!keys.cache.data) return keys.length;
  const int pos = keys.at.pos[row], size = keys.cache.block_size;
  bool bad = pos < 0 || pos / size >= keys.at.max_blocks || keys.at.seq[row] < 0 || keys.at.seq[row] >= keys.at.sequences;
  if (bad) {
    if (threadIdx.x == 0) row_exists(keys.cache, keys.at, row, pos, fault);
  } else {
    for (int b = threadIdx.x; b <= pos / size; b += kThreads) {
      const int block = block_of(keys.cache, keys.at, row, b * size);
      if (block >= 0 && block < keys.cache.blocks) continue;
      bad = true;
      report(fault, SKALD_FAULT_BLOCK, row, keys.at.seq[row], block);
    }
  }
  return __syncthreads_or(bad) ? 0 : pos + 1;
}

// One range of one row: scores, softmax and the sum of values, for G query heads.
//   SPLIT: each block one range, parts [row, q head, range, head_dim + 2] come out.
//   else: each block all ranges of a row, o comes out.
template <class T, class C, int G, bool SPLIT>
__global__ void __launch_bounds__(kThreads, G == 4 ? 3 : 4) attend(T *o, float *parts, const T *q, const __grid_constant__ Keys keys, int q_heads, int ranges, float scale, int32_t *fault, bool q_pieces, bool pieces) {
  SKALD_SHARED(float, weights, [G][kRange]);
  SKALD_SHARED(int64_t, places, [kRange]);
  SKALD_SHARED(float, sums, [kWarps][G][kSpan]);
  SKALD_SHARED(float, tops, [2][G]);  // of the range: largest score, sum of weights
  SKALD_DYNAMIC_SHARED(raw);
  float *running = reinterpret_cast<float *>(raw);  // [G][head_dim]
  begin();
  const int d = keys.head_dim, group = q_heads / keys.heads, blocks_of_head = (group + G - 1) / G;
  const int row = blockIdx.x, head = blockIdx.y / blocks_of_head, first = head * group + blockIdx.y % blocks_of_head * G;
  const int queries = min(G, (head + 1) * group - first);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sub = threadIdx.x % 16 * 8, own = threadIdx.x / 16;
  const C *k = static_cast<const C *>(keys.k), *v = static_cast<const C *>(keys.v);
  const T *query = q + (int64_t(row) * q_heads + first) * d;

  const int count = keys_of(keys, row, head == 0 && blockIdx.z == 0 ? fault : nullptr);
  if (count == 0 || (SPLIT && int(blockIdx.z) * kRange >= count)) return;
  Running state[G];
#pragma unroll
  for (int h = 0; h < G; h++) state[h] = {-INFINITY, 0.0f};

  for (int start = SPLIT ? int(blockIdx.z) * kRange : 0; start < count; start += kRange) {
    const int n = min(kRange, count - start);
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const int p = start + i;
      places[i] = keys.cache.data ? key_at(keys.cache, keys.layer, block_of(keys.cache, keys.at, row, p), head, p % keys.cache.block_size)
                                  : ((int64_t(row) / keys.length * keys.length + p) * keys.heads + head) * d;
    }
    __syncthreads();

    // Scores: 16 lanes a key.
    for (int span = 0; span < d; span += kSpan) {
      float mine[G][8];
#pragma unroll
      for (int h = 0; h < G; h++) read8(mine[h], query + int64_t(h) * d + span + sub, h < queries ? d - span - sub : 0, q_pieces);
      for (int i = own; i < kRange; i += kGroups * kAhead) {
        if (i - own >= n) break;
        float key[kAhead][8];
#pragma unroll
        for (int u = 0; u < kAhead; u++) {
          const int at = i + u * kGroups;
          read8(key[u], k + (at < n ? places[at] : 0) + span + sub, at < n ? d - span - sub : 0, pieces);
        }
#pragma unroll
        for (int u = 0; u < kAhead; u++) {
          const int at = i + u * kGroups;
#pragma unroll
          for (int h = 0; h < G; h++) {
            float dot = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) dot = __fmaf_rn(mine[h][j], key[u][j], dot);
#pragma unroll
            for (int x = 8; x; x >>= 1) dot += __shfl_xor_sync(0xffffffff, dot, x);
            if (sub == 0 && at < n) weights[h][at] = span == 0 ? dot : weights[h][at] + dot;
          }
        }
      }
    }
    __syncthreads();

    // Softmax: a warp a head.
    if (warp < G) {
      float top = -INFINITY, total = 0;
      for (int i = lane; i < n; i += 32) {
        weights[warp][i] = weights[warp][i] * scale;
        top = fmaxf(top, weights[warp][i]);
      }
      top = warp_max(top);
      for (int i = lane; i < n; i += 32) {
        const float p = expf(weights[warp][i] - top);
        weights[warp][i] = p;
        total += p;
      }
      total = warp_sum(total);
      if (lane == 0) tops[0][warp] = top, tops[1][warp] = total;
    }
    __syncthreads();
    float keep[G], take[G];
    if (!SPLIT) {
#pragma unroll
      for (int h = 0; h < G; h++) combine(state[h], tops[0][h], tops[1][h], keep[h], take[h]);
    }

    // Values: 16 lanes a key again, and then the sum over the keys of all.
    for (int span = 0; span < d; span += kSpan) {
      float sum[G][8] = {};
      for (int i = own; i < n; i += kGroups * kAhead) {
        float value[kAhead][8];
#pragma unroll
        for (int u = 0; u < kAhead; u++) {
          const int at = i + u * kGroups;
          read8(value[u], v + (at < n ? places[at] : 0) + span + sub, at < n ? d - span - sub : 0, pieces);
        }
#pragma unroll
        for (int u = 0; u < kAhead; u++) {
          const int at = i + u * kGroups;
          if (at >= n) break;
#pragma unroll
          for (int h = 0; h < G; h++) {
            const float p = weights[h][at];
#pragma unroll
            for (int j = 0; j < 8; j++) sum[h][j] = __fmaf_rn(p, value[u][j], sum[h][j]);
          }
        }
      }
#pragma unroll
      for (int h = 0; h < G; h++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
          const float s = sum[h][j] + __shfl_xor_sync(0xffffffff, sum[h][j], 16);
          if (lane < 16) sums[warp][h][sub + j] = s;
        }
      }
      __syncthreads();
      const int i = threadIdx.x, at = span + i;  // kThreads is kSpan
      if (at < d) {
#pragma unroll
        for (int h = 0; h < G; h++) {
          if (h >= queries) break;
          float s = 0;
#pragma unroll
          for (int w = 0; w < kWarps; w++) s += sums[w][h][i];
          if (SPLIT) {
            parts[((int64_t(row) * q_heads + first + h) * ranges + blockIdx.z) * (d + 2) + 2 + at] = s;
          } else {
            running[h * d + at] = start == 0 ? s * take[h] : running[h * d + at] * keep[h] + s * take[h];
          }
        }
      }
      __syncthreads();
    }
    if (SPLIT) {
      if (int(threadIdx.x) < queries) {
        float *part = parts + ((int64_t(row) * q_heads + first + threadIdx.x) * ranges + blockIdx.z) * (d + 2);
        part[0] = tops[0][threadIdx.x];
        part[1] = tops[1][threadIdx.x];
      }
      return;
    }
  }
#pragma unroll
  for (int h = 0; h < G; h++) {
    if (h >= queries) break;
    for (int i = threadIdx.x; i < d; i += kThreads) o[(int64_t(row) * q_heads + first + h) * d + i] = narrow<T>(__fdiv_rn(running[h * d + i], state[h].total));
  }
}

// Adds up the ranges of one query head.
template <class T>
__global__ void __launch_bounds__(kThreads) combine_ranges(T *o, const float *parts, const __grid_constant__ Keys keys, int q_heads, int ranges) {
  begin();
  const int d = keys.head_dim, row = blockIdx.x, head = blockIdx.y;
  const int count = keys_of(keys, row, nullptr);
  if (count == 0) return;
  const float *part = parts + (int64_t(row) * q_heads + head) * ranges * (d + 2);
  for (int i = threadIdx.x; i < d; i += kThreads) {
    Running state{-INFINITY, 0.0f};
    float sum = 0;
    for (int r = 0; r * kRange < count; r++) {
      const float *p = part + int64_t(r) * (d + 2);
      float keep, take;
      combine(state, p[0], p[1], keep, take);
      sum = r == 0 ? p[2 + i] * take : sum * keep + p[2 + i] * take;
    }
    o[(int64_t(row) * q_heads + head) * d + i] = narrow<T>(__fdiv_rn(sum, state.total));
  }
}

template <class T, class C, int G>
int attend_group(void *o, const void *q, const Keys &keys, int rows, int q_heads, int ranges, float scale, void *workspace, int32_t *fault, void *stream) {
  const int d = keys.head_dim, group = q_heads / keys.heads;
  const unsigned y = unsigned(keys.heads) * unsigned(blocks_of(group, G));
  const bool q_pieces = in_pieces<T>(q, d), pieces = in_pieces<C>(keys.k, d) && in_pieces<C>(keys.v, d);
  T *out = static_cast<T *>(o);
  const T *in = static_cast<const T *>(q);
  float *parts = static_cast<float *>(workspace);
  if (!parts || ranges == 1) {
    return launch("attend", {dim3(unsigned(rows), y), dim3(kThreads), size_t(G) * d * 4}, stream, attend<T, C, G, false>, out, parts, in, keys,
                  q_heads, ranges, scale, fault, q_pieces, pieces);
  }
  if (int e = launch("attend_ranges", {dim3(unsigned(rows), y, unsigned(ranges)), dim3(kThreads), 0}, stream, attend<T, C, G, true>, out, parts,
                     in, keys, q_heads, ranges, scale, fault, q_pieces, pieces))
    return e;
  return launch("combine_ranges", {dim3(unsigned(rows), unsigned(q_heads)), dim3(kThreads), 0}, stream, combine_ranges<T>, out,
                static_cast<const float *>(parts), keys, q_heads, ranges);
}

template <class T, class C>
int attend_keys(void *o, const void *q, const Keys &keys, int rows, int q_heads, int ranges, float scale, void *workspace, int32_t *fault, void *stream) {
  const int group = q_heads / keys.heads;
  const auto run = group == 1 ? attend_group<T, C, 1> : group == 2 ? attend_group<T, C, 2> : attend_group<T, C, 4>;
  return run(o, q, keys, rows, q_heads, ranges, scale, workspace, fault, stream);
}

// FullAttention one query at a time.
int attend_dense(int t, void *o, const void *q, const void *k, const void *v, int batch, int length, int heads, int head_dim, float scale, void *stream) {
  const Keys keys{{}, {}, 0, k, v, length, heads, head_dim};
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return attend_group<T, T, 1>(o, q, keys, batch * length, heads, 1, scale, nullptr, nullptr, stream);
  });
}

static int ranges_of(const skald_cache &c, int max_blocks) { return int(blocks_of(int64_t(max_blocks) * c.block_size, kRange)); }

}  // namespace skald

using namespace skald;

extern "C" size_t skald_attention_workspace(const skald_cache *cache, int q_heads, int rows, int max_blocks) {
  return size_t(rows) * size_t(q_heads) * size_t(ranges_of(*cache, max_blocks)) * (size_t(cache->head_dim) + 2) * 4;
}

extern "C" int skald_cached_attention(int t, void *o, const void *q, const skald_cache *cache, int layer, int q_heads, float scale,
                                      const skald_rows *at, void *workspace, int32_t *fault, void *stream) {
  if (!cache_makes_sense(*cache, layer) || at->n < 0 || q_heads < 1 || q_heads % cache->heads != 0 || at->max_blocks < 1) return SKALD_INVALID;
  if (at->n == 0) return 0;
  Keys keys{*cache, *at, layer, cache->data, nullptr, 0, cache->heads, cache->head_dim};
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return with_float(cache->dtype, [&](auto *c) {
      using C = SKALD_TYPE(c);
      keys.v = static_cast<const C *>(cache->data) + values_after(*cache);
      return attend_keys<T, C>(o, q, keys, at->n, q_heads, ranges_of(*cache, at->max_blocks), scale, workspace, fault, stream);
    });
  });
}
