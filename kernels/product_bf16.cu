// Products of bfloat16 numbers with bfloat16 weights, on tensor cores.
//
// An mma sums 16 products of K at a time. Which 16 is free, if x and the weights agree: so a
// lane reads 16 bytes of a row, eight numbers in a line, and they serve two mma as they
// come. The few-row kernel needs no shared memory for its operands that way, and the other
// no shuffling; both add the same numbers in the same order. Weights are the mma's rows and
// x its columns, because few rows fill 8 columns better than 16 rows.
#include <type_traits>

#include "product.cuh"

namespace skald {

// Eight numbers of a row, those from n on zero. once: of weights that this block alone reads.
template <bool once> __device__ __forceinline__ uint4 fetch8(const bf16 *p, int n, bool pieces) {
  if (n >= 8 && pieces) return once ? read_once16(p) : *reinterpret_cast<const uint4 *>(p);
  unsigned pairs[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    pairs[i] = pair_bf16(2 * i < n ? p[2 * i] : narrow<bf16>(0.0f), 2 * i + 1 < n ? p[2 * i + 1] : narrow<bf16>(0.0f));
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// sum += the chunk's products of MT*16 weights with NT*8 rows.
template <int MT, int NT>
__device__ __forceinline__ void multiply(float (&sum)[MT][NT][4], const uint4 (&w)[MT][2], const uint4 (&x)[NT]) {
  unsigned a[MT][4], b[NT][2];
#pragma unroll
  for (int i = 0; i < MT; i++) a[i][0] = w[i][0].x, a[i][1] = w[i][1].x, a[i][2] = w[i][0].y, a[i][3] = w[i][1].y;
#pragma unroll
  for (int j = 0; j < NT; j++) b[j][0] = x[j].x, b[j][1] = x[j].y;
  mma_bf16(sum, a, b);
#pragma unroll
  for (int i = 0; i < MT; i++) a[i][0] = w[i][0].z, a[i][1] = w[i][1].z, a[i][2] = w[i][0].w, a[i][3] = w[i][1].w;
#pragma unroll
  for (int j = 0; j < NT; j++) b[j][0] = x[j].z, b[j][1] = x[j].w;
  mma_bf16(sum, a, b);
}

// ---- few rows: each warp takes a segment, and weights go from memory to registers ----

constexpr int kFewThreads = kSegments * 32;

// MT*16 columns and NT*8 rows a block, and U chunks of weights on their way.
template <int MT, int NT, int U>
__global__ void __launch_bounds__(kFewThreads) few_rows_bf16(const __grid_constant__ Shape s, const __grid_constant__ Group group, int rows) {
  SKALD_DYNAMIC_SHARED(raw);
  constexpr int kColumns = MT * 16, kRows = NT * 8;
  int tile;
  const Product &p = group.product[product_of(group, tile)];
  const int segment = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int column = tile * kColumns, row = blockIdx.x * kRows, k = s.in;
  const int of_segment = ((k + kChunk - 1) / kChunk + kSegments - 1) / kSegments;
  const int end = min((segment + 1) * of_segment * kChunk, k);
  const bf16 *w = static_cast<const bf16 *>(p.w), *x = static_cast<const bf16 *>(s.x);

  uint4 next[U][MT][2];
  const auto fetch = [&](int at) {
#pragma unroll
    for (int u = 0; u < U; u++) {
#pragma unroll
      for (int i = 0; i < MT; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int c = column + i * 16 + h * 8 + g, from = at + u * kChunk + t * 8;
          next[u][i][h] = fetch8<true>(w + int64_t(c) * k + from, c < p.n ? end - from : 0, s.w_pieces);
        }
      }
    }
  };
  int at = segment * of_segment * kChunk;
  fetch(at);
  begin();
  float sum[MT][NT][4] = {};
  while (at < end) {
    uint4 now[U][MT][2];
    memcpy(now, next, sizeof now);
    const int here = at;
    at += U * kChunk;
    if (at < end) fetch(at);
#pragma unroll
    for (int u = 0; u < U; u++) {
      const int from = here + u * kChunk + t * 8;
      if (here + u * kChunk >= end) break;
      uint4 b[NT];
#pragma unroll
      for (int j = 0; j < NT; j++) {
        const int r = row + j * 8 + g;
        b[j] = fetch8<false>(x + int64_t(r) * k + from, r < rows ? end - from : 0, s.x_pieces);
      }
      multiply<MT, NT>(sum, now[u], b);
    }
  }

  float *parts = reinterpret_cast<float *>(raw);  // [segment][row][column]
#pragma unroll
  for (int i = 0; i < MT; i++) {
#pragma unroll
    for (int j = 0; j < NT; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        parts[(segment * kRows + j * 8 + t * 2 + r % 2) * kColumns + i * 16 + g + r / 2 * 8] = sum[i][j][r];
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kColumns; i += kFewThreads) {
    const int r = row + i / kColumns, c = column + i % kColumns;
    if (r >= rows || c >= p.n) continue;
    float total = 0;
#pragma unroll
    for (int q = 0; q < kSegments; q++) total += parts[q * kRows * kColumns + i];
    const int64_t place = r * p.stride + c;
    static_cast<bf16 *>(p.y)[place] = narrow<bf16>(finished<bf16>(p, place, c, total));
  }
}

// ---- many rows: tiles in shared memory, kStages chunks on their way ----

constexpr int kStages = 4;

// CW by RW warps, each with MT*16 columns and NT*8 rows.
template <int CW, int RW, int MT, int NT>
__global__ void __launch_bounds__(CW *RW * 32) many_rows_bf16(const __grid_constant__ Shape s, const __grid_constant__ Group group) {
  SKALD_DYNAMIC_SHARED(raw);
  constexpr int kThreads = CW * RW * 32, kColumns = CW * MT * 16, kRows = RW * NT * 8, kLines = kColumns + kRows;
  static_assert(kLines * 4 % kThreads == 0, "every thread copies as much");
  uint4 *stages = reinterpret_cast<uint4 *>(raw);  // [stage][columns, rows][4]: a line is 32 numbers
  int tile;
  const Product &p = group.product[product_of(group, tile)];
  const Phase phase = phase_of(s);
  const Chunks chunks = chunks_of(s, phase);
  const int column = tile * kColumns, row = blockIdx.x * kRows;
  if (row >= phase.rows) return;
  const bf16 *w = static_cast<const bf16 *>(p.w), *x = static_cast<const bf16 *>(s.x) + int64_t(phase.batch) * s.length * s.in;

  int tap = 0, channel = 0;  // of the chunk that is copied next
  const auto copy = [&](int chunk) {
    if (chunk < chunks.all) {
      uint4 *stage = stages + chunk % kStages * kLines * 4;
#pragma unroll
      for (int i = threadIdx.x; i < kLines * 4; i += kThreads) {
        const int line = i / 4, from = channel + i % 4 * 8;
        const bf16 *src;
        bool there, pieces;
        if (line < kColumns) {
          const int c = column + line;
          there = c < p.n;
          src = w + (int64_t(phase.tap + tap * phase.tap_step) * p.n + c) * s.in + from;
          pieces = s.w_pieces;
        } else {
          const int m = row + line - kColumns, r = phase.row + m + tap * phase.row_step;
          there = m < phase.rows && r >= 0 && r < s.length;
          src = x + int64_t(r) * s.in + from;
          pieces = s.x_pieces;
        }
        const int n = there ? s.in - from : 0;
        if (pieces) {  // rows are whole pieces then
          cp_async16(stage + i, n > 0 ? src : w, n > 0);
        } else {
          stage[i] = fetch8<false>(src, n, false);
        }
      }
      channel += kChunk;
      if (channel >= s.in) channel = 0, tap++;
    }
    cp_async_commit();
  };

  begin();
  for (int c = 0; c < kStages - 1; c++) copy(c);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int line = warp % CW * MT * 16, line_x = kColumns + warp / CW * NT * 8;
  float total[MT][NT][4] = {}, sum[MT][NT][4] = {};
  for (int chunk = 0, left = chunks.of_segment; chunk < chunks.all; chunk++) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    copy(chunk + kStages - 1);
    const uint4 *stage = stages + chunk % kStages * kLines * 4;
    uint4 a[MT][2], b[NT];
#pragma unroll
    for (int i = 0; i < MT; i++) {
      a[i][0] = stage[(line + i * 16 + g) * 4 + t];
      a[i][1] = stage[(line + i * 16 + 8 + g) * 4 + t];
    }
#pragma unroll
    for (int j = 0; j < NT; j++) b[j] = stage[(line_x + j * 8 + g) * 4 + t];
    multiply<MT, NT>(sum, a, b);
    if (--left == 0 || chunk + 1 == chunks.all) {
      left = chunks.of_segment;
#pragma unroll
      for (int i = 0; i < MT; i++) {
#pragma unroll
        for (int j = 0; j < NT; j++) {
#pragma unroll
          for (int r = 0; r < 4; r++) total[i][j][r] += sum[i][j][r], sum[i][j][r] = 0;
        }
      }
    }
  }

  // Through shared memory, so that neighbours store neighbours.
  cp_async_wait<0>();
  __syncthreads();
  float *result = reinterpret_cast<float *>(raw);  // [row][column]
#pragma unroll
  for (int i = 0; i < MT; i++) {
#pragma unroll
    for (int j = 0; j < NT; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        result[(line_x - kColumns + j * 8 + t * 2 + r % 2) * (kColumns + 4) + line + i * 16 + g + r / 2 * 8] = total[i][j][r];
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const int m = row + i / kColumns, c = column + i % kColumns;
    if (m >= phase.rows || c >= p.n) continue;
    const int64_t place = (int64_t(phase.batch) * s.out_length + phase.first + int64_t(m) * phase.stride) * p.stride + c;
    static_cast<bf16 *>(p.y)[place] = narrow<bf16>(finished<bf16>(p, place, c, result[i / kColumns * (kColumns + 4) + i % kColumns]));
  }
}

template <int MT, int NT, int U> int few(const Shape &s, Group &g, int count, int rows, void *stream) {
  const Grid grid{dim3(unsigned(blocks_of(rows, NT * 8)), cut(g, count, MT * 16)), dim3(kFewThreads), size_t(kSegments) * MT * 16 * NT * 8 * 4};
  return launch("few_rows_bf16", grid, stream, few_rows_bf16<MT, NT, U>, s, g, rows);
}

template <int CW, int RW, int MT, int NT> int many(const Shape &s, Group &g, int count, int rows, unsigned z, void *stream) {
  constexpr size_t kColumns = CW * MT * 16, kRows = RW * NT * 8;
  constexpr size_t kStaged = kStages * (kColumns + kRows) * 64, kResult = kRows * (kColumns + 4) * 4;
  const Grid grid{dim3(unsigned(blocks_of(rows, kRows)), cut(g, count, int(kColumns)), z), dim3(CW * RW * 32), kStaged > kResult ? kStaged : kResult};
  return launch("many_rows_bf16", grid, stream, many_rows_bf16<CW, RW, MT, NT>, s, g);
}

int product_bf16(const Shape &s, Group &g, int count, int rows, unsigned z, void *stream) {
  if (s.taps == 1 && s.pad == 0 && !s.transposed && z == 1) {
    if (rows <= 8) return few<1, 1, 4>(s, g, count, rows, stream);
    if (rows <= 16) return few<2, 2, 2>(s, g, count, rows, stream);
    if (rows <= 32) return few<2, 4, 2>(s, g, count, rows, stream);
    if (rows <= kFewRows) return few<2, 8, 1>(s, g, count, rows, stream);
  }
  if (rows > 64 && g.product[0].n > 64) return many<2, 4, 4, 4>(s, g, count, rows, z, stream);
  return many<2, 2, 2, 4>(s, g, count, rows, z, stream);
}

}  // namespace skald
