// FullAttention: a block does 64 queries of one head and goes through all keys in tiles of
// 64, with a running softmax. For bfloat16 on tensor cores, for float32 in multiply-adds;
// wider heads than they take go one query at a time, in cached_attention.cu.
//
// Weights of the softmax are float32 numbers. So that they stay that, a weight meets the
// bfloat16 values as three bfloat16 terms whose sum it is exactly.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

int attend_dense(int t, void *o, const void *q, const void *k, const void *v, int batch, int length, int heads, int head_dim, float scale, void *stream);

constexpr int kTile = 64;

// q, k, v and o are [batch, length, heads, dim].
struct Sequence {
  int length, heads, dim;
  float scale;
  bool pieces;
};

// Where the head of a block begins; one position further is heads*dim numbers further.
__device__ __forceinline__ int64_t head_of(const Sequence &s) { return (int64_t(blockIdx.z) * s.length * s.heads + blockIdx.y) * s.dim; }

// ---- bfloat16: a warp has 16 queries ----

// D is dim, rounded up to what there is a kernel for. A line in shared memory has 16 bytes
// more, so that the eight lines of an ldmatrix meet different banks.
template <int D> constexpr int kLine = D + 8;

// Copies positions first to first+64; what is not there becomes zero.
template <int D> __device__ __forceinline__ void copy_tile(bf16 *tile, const bf16 *head, int first, const Sequence &s) {
  const int64_t step = int64_t(s.heads) * s.dim;
#pragma unroll
  for (int i = threadIdx.x; i < kTile * (D / 8); i += 128) {
    const int line = i / (D / 8), at = i % (D / 8) * 8, position = first + line;
    const bf16 *src = head + position * step + at;
    const int n = position < s.length ? s.dim - at : 0;
    bf16 *dst = tile + line * kLine<D> + at;
    if (s.pieces) {
      cp_async16(dst, n > 0 ? src : head, n > 0);
    } else {
#pragma unroll
      for (int j = 0; j < 8; j++) dst[j] = j < n ? src[j] : narrow<bf16>(0.0f);
    }
  }
}

template <int D>
__global__ void __launch_bounds__(128) attend_bf16(bf16 *o, const bf16 *q, const bf16 *k, const bf16 *v, const __grid_constant__ Sequence s) {
  SKALD_DYNAMIC_SHARED(raw);
  constexpr int kNumbers = kTile * kLine<D>;
  bf16 *queries = reinterpret_cast<bf16 *>(raw), *keys = queries + kNumbers, *values = keys + 2 * kNumbers;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = lane % 4;
  const int64_t head = head_of(s);
  const int first = blockIdx.x * kTile, tiles = (s.length + kTile - 1) / kTile;
  begin();
  copy_tile<D>(queries, q + head, first, s);
  copy_tile<D>(keys, k + head, 0, s);
  copy_tile<D>(values, v + head, 0, s);
  cp_async_commit();

  unsigned x[D / 16][1][4];
  float sum[1][D / 8][4] = {};
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};  // of queries lane/4 and 8 further
  for (int tile = 0; tile < tiles; tile++) {
    const int stage = tile % 2;
    if (tile + 1 < tiles) {
      copy_tile<D>(keys + (1 - stage) * kNumbers, k + head, (tile + 1) * kTile, s);
      copy_tile<D>(values + (1 - stage) * kNumbers, v + head, (tile + 1) * kTile, s);
    }
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    if (tile == 0) {
#pragma unroll
      for (int c = 0; c < D / 16; c++) ldmatrix(x[c][0], queries + (warp * 16 + lane % 16) * kLine<D> + c * 16 + lane / 16 * 8);
    }

    float score[1][kTile / 8][4] = {};
    const bf16 *key = keys + stage * kNumbers, *value = values + stage * kNumbers;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
      unsigned b[kTile / 8][2];
#pragma unroll
      for (int n = 0; n < kTile / 16; n++) {
        unsigned r[4];
        ldmatrix(r, key + (n * 16 + lane / 16 * 8 + lane % 8) * kLine<D> + c * 16 + lane / 8 % 2 * 8);
        b[2 * n][0] = r[0], b[2 * n][1] = r[1], b[2 * n + 1][0] = r[2], b[2 * n + 1][1] = r[3];
      }
      mma_bf16(score, x[c], b);
    }

#pragma unroll
    for (int h = 0; h < 2; h++) {
      float most = top[h];
#pragma unroll
      for (int n = 0; n < kTile / 8; n++) {
#pragma unroll
        for (int i = 2 * h; i < 2 * h + 2; i++) {
          const bool there = tile * kTile + n * 8 + t * 2 + i % 2 < s.length;
          score[0][n][i] = there ? score[0][n][i] * s.scale : -INFINITY;
          most = fmaxf(most, score[0][n][i]);
        }
      }
      most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
      const float keep = expf(top[h] - most);
      top[h] = most;
      total[h] *= keep;
#pragma unroll
      for (int n = 0; n < D / 8; n++) sum[0][n][2 * h] *= keep, sum[0][n][2 * h + 1] *= keep;
#pragma unroll
      for (int n = 0; n < kTile / 8; n++) {
#pragma unroll
        for (int i = 2 * h; i < 2 * h + 2; i++) {
          score[0][n][i] = expf(score[0][n][i] - most);
          total[h] += score[0][n][i];
        }
      }
    }

#pragma unroll
    for (int c = 0; c < kTile / 16; c++) {
      unsigned b[D / 8][2];
#pragma unroll
      for (int n = 0; n < D / 16; n++) {
        unsigned r[4];
        ldmatrix_trans(r, value + (c * 16 + lane % 16) * kLine<D> + n * 16 + lane / 16 * 8);
        b[2 * n][0] = r[0], b[2 * n][1] = r[1], b[2 * n + 1][0] = r[2], b[2 * n + 1][1] = r[3];
      }
#pragma unroll
      for (int term = 0; term < 3; term++) {
        unsigned p[1][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float *w = &score[0][2 * c + i / 2][i % 2 * 2];
          const bf16 a = narrow<bf16>(w[0]), z = narrow<bf16>(w[1]);
          p[0][i] = pair_bf16(a, z);
          w[0] -= widen(a), w[1] -= widen(z);  // exact
        }
        mma_bf16(sum, p, b);
      }
    }
    __syncthreads();  // the tile may be written again
  }

#pragma unroll
  for (int h = 0; h < 2; h++) {
    total[h] += __shfl_xor_sync(0xffffffff, total[h], 1);
    total[h] += __shfl_xor_sync(0xffffffff, total[h], 2);
    const int position = first + warp * 16 + h * 8 + lane / 4;
    if (position >= s.length) continue;
    bf16 *out = o + head + position * int64_t(s.heads) * s.dim;
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
      const int at = n * 8 + t * 2;
      const bf16 a = narrow<bf16>(__fdiv_rn(sum[0][n][2 * h], total[h])), z = narrow<bf16>(__fdiv_rn(sum[0][n][2 * h + 1], total[h]));
      if (s.pieces && at < s.dim) {
        *reinterpret_cast<unsigned *>(out + at) = pair_bf16(a, z);
      } else {
        if (at < s.dim) out[at] = a;
        if (at + 1 < s.dim) out[at + 1] = z;
      }
    }
  }
}

// ---- float32: a thread has four queries, and of them four keys and then four numbers ----

constexpr int kDim = 64, kPad = kTile + 4;

__global__ void __launch_bounds__(256) attend_float(float *o, const float *q, const float *k, const float *v, const __grid_constant__ Sequence s) {
  SKALD_DYNAMIC_SHARED(raw);
  float(*queries)[kPad] = reinterpret_cast<float(*)[kPad]>(raw);  // [number][query]
  float(*keys)[kPad] = queries + kDim;                            // [number][key]
  float(*values)[kPad] = keys + kDim;                             // [key][number]
  float(*weights)[kPad] = values + kTile;                         // [key][query]
  const int64_t head = head_of(s), step = int64_t(s.heads) * s.dim;
  const int first = blockIdx.x * kTile, tx = threadIdx.x % 16 * 4, ty = threadIdx.x / 16 * 4;
  const int line = threadIdx.x % kTile, part = threadIdx.x / kTile * 8;  // and 32 numbers further

  const auto fetch = [&](float (&x)[2][8], const float *from, int position) {
#pragma unroll
    for (int i = 0; i < 2; i++) read8(x[i], from + head + position * step + part + 32 * i, position < s.length ? s.dim - part - 32 * i : 0, s.pieces);
  };
  const auto turned = [&](float (*to)[kPad], const float (&x)[2][8]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < 8; j++) to[part + 32 * i + j][line] = x[i][j];
    }
  };
  begin();
  float next_k[2][8], next_v[2][8];
  fetch(next_k, q, first + line);
  turned(queries, next_k);
  fetch(next_k, k, line);
  fetch(next_v, v, line);

  float sum[4][4] = {}, top[4], total[4];
#pragma unroll
  for (int i = 0; i < 4; i++) top[i] = -INFINITY, total[i] = 0;
  for (int start = 0; start < s.length; start += kTile) {
    __syncthreads();  // the last tile is done with
    turned(keys, next_k);
#pragma unroll
    for (int i = 0; i < 2; i++) write8(&values[line][part + 32 * i], next_v[i], 8, true);
    __syncthreads();
    if (start + kTile < s.length) {
      fetch(next_k, k, start + kTile + line);
      fetch(next_v, v, start + kTile + line);
    }
    float score[4][4] = {};
#pragma unroll 8
    for (int n = 0; n < kDim; n++) {
      const float4 a = *reinterpret_cast<const float4 *>(&queries[n][ty]), b = *reinterpret_cast<const float4 *>(&keys[n][tx]);
      const float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) score[i][j] = __fmaf_rn(x[i], y[j], score[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float most = top[i], part_total = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        score[i][j] = start + tx + j < s.length ? score[i][j] * s.scale : -INFINITY;
        most = fmaxf(most, score[i][j]);
      }
#pragma unroll
      for (int x = 8; x; x >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, x));
      const float keep = expf(top[i] - most);
      top[i] = most;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        score[i][j] = expf(score[i][j] - most);
        part_total += score[i][j];
        sum[i][j] *= keep;
      }
#pragma unroll
      for (int x = 8; x; x >>= 1) part_total += __shfl_xor_sync(0xffffffff, part_total, x);
      total[i] = total[i] * keep + part_total;
    }
    // The 16 threads that read a weight are lanes of the warp that writes it.
#pragma unroll
    for (int j = 0; j < 4; j++) *reinterpret_cast<float4 *>(&weights[tx + j][ty]) = make_float4(score[0][j], score[1][j], score[2][j], score[3][j]);
    __syncwarp();
#pragma unroll 8
    for (int n = 0; n < kTile; n++) {
      const float4 a = *reinterpret_cast<const float4 *>(&weights[n][ty]), b = *reinterpret_cast<const float4 *>(&values[n][tx]);
      const float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (first + ty + i >= s.length) continue;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (tx + j < s.dim) o[head + (first + ty + i) * step + tx + j] = __fdiv_rn(sum[i][j], total[i]);
    }
  }
}

template <int D> int run_bf16(const dim3 &grid, void *o, const void *q, const void *k, const void *v, const Sequence &s, void *stream) {
  return launch("attend_bf16", {grid, dim3(128), size_t(5) * kTile * kLine<D> * 2}, stream, attend_bf16<D>, static_cast<bf16 *>(o), static_cast<const bf16 *>(q),
                static_cast<const bf16 *>(k), static_cast<const bf16 *>(v), s);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_full_attention(int t, void *o, const void *q, const void *k, const void *v, int batch, int length, int heads,
                                    int head_dim, float scale, void *stream) {
  if (batch < 0 || length < 0 || heads < 0 || head_dim < 0 || (t != SKALD_F32 && t != SKALD_BF16)) return SKALD_INVALID;
  if (int64_t(batch) * length * heads * head_dim == 0) return 0;
  const dim3 grid(unsigned(blocks_of(length, kTile)), unsigned(heads), unsigned(batch));
  const auto pieces = [&](auto *p) {
    using T = SKALD_TYPE(p);
    return in_pieces<T>(o, head_dim) && in_pieces<T>(q, head_dim) && in_pieces<T>(k, head_dim) && in_pieces<T>(v, head_dim);
  };
  if (t == SKALD_BF16 && head_dim <= 128) {
    const Sequence s{length, heads, head_dim, scale, pieces(static_cast<bf16 *>(nullptr))};
    return head_dim <= 64 ? run_bf16<64>(grid, o, q, k, v, s, stream) : run_bf16<128>(grid, o, q, k, v, s, stream);
  }
  if (t == SKALD_F32 && head_dim <= kDim) {
    const Sequence s{length, heads, head_dim, scale, pieces(static_cast<float *>(nullptr))};
    return launch("attend_float", {grid, dim3(256), size_t(2 * kDim + 2 * kTile) * kPad * 4}, stream, attend_float, static_cast<float *>(o),
                  static_cast<const float *>(q), static_cast<const float *>(k), static_cast<const float *>(v), s);
  }
  return attend_dense(t, o, q, k, v, batch, length, heads, head_dim, scale, stream);
}
