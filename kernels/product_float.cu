// Products in float32 multiply-adds, for float32 numbers or weights that are not bfloat16.
// A segment of K is summed one number after the other, by one thread, in both kernels.
#include <type_traits>

#include "product.cuh"

namespace skald {

// ---- few rows: each warp takes a segment, each lane a column ----

constexpr int kFewThreads = kSegments * 32, kFewColumns = 32, kAtOnce = 8;

template <class T, class W>
__global__ void __launch_bounds__(kFewThreads, 2) few_rows_float(const __grid_constant__ Shape s, const __grid_constant__ Group group, int rows) {
  SKALD_SHARED(float, weights, [kSegments][kChunk][kFewColumns + 1]);
  SKALD_SHARED(float, values, [kSegments][kAtOnce][kChunk]);
  int tile;
  const Product &p = group.product[product_of(group, tile)];
  const int segment = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int column = tile * kFewColumns, row = blockIdx.x * kAtOnce, k = s.in;
  const int of_segment = ((k + kChunk - 1) / kChunk + kSegments - 1) / kSegments;
  const int end = min((segment + 1) * of_segment * kChunk, k);
  const W *w = static_cast<const W *>(p.w);
  const T *x = static_cast<const T *>(s.x);

  float next[4][8];  // eight numbers of columns lane/4 + 8i
  const auto fetch = [&](int at) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int c = column + lane / 4 + 8 * i, from = at + lane % 4 * 8;
      read8(next[i], w + int64_t(c) * k + from, c < p.n ? end - from : 0, s.w_pieces);
    }
  };
  int at = segment * of_segment * kChunk;
  fetch(at);
  begin();
  float sum[kAtOnce] = {};
  for (; at < end; at += kChunk) {
    __syncwarp();  // the last chunk is done with
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 8; j++) weights[segment][lane % 4 * 8 + j][lane / 4 + 8 * i] = next[i][j];
    }
    float v[8];
    const int r = row + lane / 4, from = at + lane % 4 * 8;
    read8(v, x + int64_t(r) * k + from, r < rows ? end - from : 0, s.x_pieces);
#pragma unroll
    for (int j = 0; j < 8; j++) values[segment][lane / 4][lane % 4 * 8 + j] = v[j];
    if (at + kChunk < end) fetch(at + kChunk);
    __syncwarp();
#pragma unroll 8
    for (int i = 0; i < kChunk; i++) {
      const float a = weights[segment][i][lane];
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) sum[j] = __fmaf_rn(a, values[segment][j][i], sum[j]);
    }
  }
  __syncthreads();
  float(*parts)[kAtOnce][kFewColumns] = reinterpret_cast<float(*)[kAtOnce][kFewColumns]>(&weights[0][0][0]);
#pragma unroll
  for (int j = 0; j < kAtOnce; j++) parts[segment][j][lane] = sum[j];
  __syncthreads();
  const int j = threadIdx.x / kFewColumns, r = row + j, c = column + lane;
  if (r >= rows || c >= p.n) return;
  float total = 0;
#pragma unroll
  for (int q = 0; q < kSegments; q++) total += parts[q][j][lane];
  const int64_t place = r * p.stride + c;
  static_cast<T *>(p.y)[place] = narrow<T>(finished<T>(p, place, c, total));
}
static_assert(kFewThreads == kAtOnce * kFewColumns, "a thread stores one number");

// ---- many rows: 16*E by 16*E results a block, E by E a thread ----

constexpr int kDepth = 16;  // of K in shared memory at once

template <class T, class W, int E>
__global__ void __launch_bounds__(256) many_rows_float(const __grid_constant__ Shape s, const __grid_constant__ Group group) {
  constexpr int kSide = 16 * E, kPad = kSide + 4;
  SKALD_SHARED(float, weights, [2][kDepth][kPad]);
  SKALD_SHARED(float, values, [2][kDepth][kPad]);
  int tile;
  const Product &p = group.product[product_of(group, tile)];
  const Phase phase = phase_of(s);
  const Chunks chunks = chunks_of(s, phase);
  const int column = tile * kSide, row = blockIdx.x * kSide;
  if (row >= phase.rows) return;
  const W *w = static_cast<const W *>(p.w);
  const T *x = static_cast<const T *>(s.x) + int64_t(phase.batch) * s.length * s.in;

  // Every thread fetches eight numbers of one line of each, if there are so many lines.
  const int line = threadIdx.x / 2, part = threadIdx.x % 2 * 8;
  const int m = row + line, c = column + line;
  int tap = 0, channel = 0;
  float next_w[8], next_x[8];
  const auto fetch = [&] {
    if (line >= kSide) return;
    const int from = channel + part, r = phase.row + m + tap * phase.row_step;
    read8(next_w, w + (int64_t(phase.tap + tap * phase.tap_step) * p.n + c) * s.in + from, c < p.n ? s.in - from : 0, s.w_pieces);
    read8(next_x, x + int64_t(r) * s.in + from, m < phase.rows && r >= 0 && r < s.length ? s.in - from : 0, s.x_pieces);
    channel += kDepth;
    if (channel >= chunks.of_tap * kChunk) channel = 0, tap++;
  };
  begin();
  const int steps = chunks.all * (kChunk / kDepth), of_segment = chunks.of_segment * (kChunk / kDepth);
  if (steps > 0) fetch();
  float total[E][E] = {}, sum[E][E] = {};
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int step = 0, left = of_segment; step < steps; step++) {
    const int stage = step % 2;
    if (line < kSide) {
#pragma unroll
      for (int j = 0; j < 8; j++) weights[stage][part + j][line] = next_w[j], values[stage][part + j][line] = next_x[j];
    }
    __syncthreads();
    if (step + 1 < steps) fetch();
#pragma unroll
    for (int i = 0; i < kDepth; i++) {
      float a[E], b[E];  // columns and rows tx*4, tx*4+1, ..., then 64 further on
#pragma unroll
      for (int e = 0; e < E; e++) a[e] = weights[stage][i][e / 4 * 64 + tx * 4 + e % 4], b[e] = values[stage][i][e / 4 * 64 + ty * 4 + e % 4];
#pragma unroll
      for (int e = 0; e < E; e++) {
#pragma unroll
        for (int f = 0; f < E; f++) sum[e][f] = __fmaf_rn(a[f], b[e], sum[e][f]);
      }
    }
    if (--left == 0 || step + 1 == steps) {
      left = of_segment;
#pragma unroll
      for (int e = 0; e < E; e++) {
#pragma unroll
        for (int f = 0; f < E; f++) total[e][f] += sum[e][f], sum[e][f] = 0;
      }
    }
  }
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int r = row + e / 4 * 64 + ty * 4 + e % 4;
    if (r >= phase.rows) continue;
    const int64_t begins = (int64_t(phase.batch) * s.out_length + phase.first + int64_t(r) * phase.stride) * p.stride;
#pragma unroll
    for (int f = 0; f < E; f++) {
      const int column_f = column + f / 4 * 64 + tx * 4 + f % 4;
      if (column_f >= p.n) continue;
      static_cast<T *>(p.y)[begins + column_f] = narrow<T>(finished<T>(p, begins + column_f, column_f, total[e][f]));
    }
  }
}

// Large tiles are for weights that large products have: float16 is seldom stored.
template <class W> constexpr bool kWide = !std::is_same<W, half>::value;

template <class T, class W> int product(const Shape &s, Group &g, int count, int rows, unsigned z, void *stream) {
  if (s.taps == 1 && s.pad == 0 && !s.transposed && z == 1 && rows <= kFewRows) {
    const Grid grid{dim3(unsigned(blocks_of(rows, kAtOnce)), cut(g, count, kFewColumns)), dim3(kFewThreads), 0};
    return launch("few_rows_float", grid, stream, few_rows_float<T, W>, s, g, rows);
  }
  const int side = kWide<W> && rows > 64 && g.product[0].n > 64 ? 128 : 64;
  const Grid grid{dim3(unsigned(blocks_of(rows, side)), cut(g, count, side), z), dim3(256), 0};
  if constexpr (kWide<W>) {
    if (side == 128) return launch("many_rows_float", grid, stream, many_rows_float<T, W, 8>, s, g);
  }
  return launch("many_rows_float", grid, stream, many_rows_float<T, W, 4>, s, g);
}

int product_float(int t, int w, const Shape &s, Group &g, int count, int rows, unsigned z, void *stream) {
  return with_float(t, [&](auto *p) {
    return with_stored(w, [&](auto *q) {
      using T = SKALD_TYPE(p);
      using W = SKALD_TYPE(q);
      if constexpr (std::is_same<T, bf16>::value && std::is_same<W, bf16>::value) {
        return int(SKALD_INVALID);  // that is product_bf16
      } else {
        return product<T, W>(s, g, count, rows, z, stream);
      }
    });
  });
}

}  // namespace skald
