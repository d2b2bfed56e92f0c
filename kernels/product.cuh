// product.cuh is what all products have in common: which rows of x meet which weights, in
// what order they are added, and how a result is stored.
//
// A convolution is a product in which row m of the result meets, under each of its taps,
// another row of x; a matrix product has one tap. K, the taps with their channels, goes in
// chunks of 32 channels of one tap, and the chunks in kSegments runs of equal length. Each
// segment is summed from zero, and the segments are added in order. All of that depends on
// K alone, so kernels for few and for many rows give the same bits.
#ifndef SKALD_PRODUCT_CUH
#define SKALD_PRODUCT_CUH

#include "numbers.cuh"

namespace skald {

constexpr int kChunk = 32, kSegments = 8;

struct Product {
  void *y;
  int64_t stride;
  const void *w, *scales;
  const float *bias;
  const void *residual;
  int32_t n;
};

struct Group {
  Product product[SKALD_GROUP];
  int32_t first[SKALD_GROUP + 1];  // tile of each, and the number of all
};

// Which product the columns of this block belong to; tile becomes their number there. Blocks
// of the same columns follow each other (blockIdx.x counts rows), so that weights are read
// from memory once.
__device__ __forceinline__ int product_of(const Group &g, int &tile) {
  tile = blockIdx.y;
  int i = 0;
#pragma unroll
  for (int j = 1; j < SKALD_GROUP; j++) {
    if (tile >= g.first[j]) i = j;
  }
  tile -= g.first[i];
  return i;
}

// x [batch, length, in] and the result [batch, out_length, n]. A transposed convolution of
// stride s is s convolutions side by side, its phases: outputs s apart meet the same taps,
// each at one row of x before the last one's.
struct Shape {
  const void *x;
  int32_t in, length, out_length, taps;
  int32_t phases, dilation, pad;
  bool transposed, x_pieces, w_pieces;
};

// One phase: row m of it is row first + m*stride of the result, and meets tap tap + j*tap_step
// at row row + m + j*row_step of x.
struct Phase {
  int batch, first, stride, rows;
  int tap, tap_step, taps;
  int row, row_step;
};

__device__ __forceinline__ Phase phase_of(const Shape &s) {
  const int z = blockIdx.z;
  if (!s.transposed) return {z, 0, 1, s.out_length, 0, 1, s.taps, -s.pad, s.dilation};
  const int k = z % s.phases, first = (k - s.pad % s.phases + s.phases) % s.phases;
  const int rows = (s.out_length - first + s.phases - 1) / s.phases, taps = (s.taps - k + s.phases - 1) / s.phases;
  return {z / s.phases, first, s.phases, max(rows, 0), k, s.phases, max(taps, 0), (first + s.pad - k) / s.phases, -1};
}

// Where the chunks of K stand. Chunks of one tap follow each other.
struct Chunks {
  int of_tap, all, of_segment;
};
__device__ __forceinline__ Chunks chunks_of(const Shape &s, const Phase &p) {
  const int of_tap = (s.in + kChunk - 1) / kChunk, all = of_tap * p.taps;
  return {of_tap, all, (all + kSegments - 1) / kSegments};
}

// y = r(sum + bias), and with a residual y = r(residual + r(sum + bias)).
template <class T> __device__ __forceinline__ float finished(const Product &p, int64_t at, int column, float sum) {
  if (p.bias) sum += p.bias[column];
  if (!p.residual) return sum;
  return widen(static_cast<const T *>(p.residual)[at]) + rounded<T>(sum);
}

// Fills in Group.first for tiles of so many columns, and returns how many there are.
inline unsigned cut(Group &g, int count, int columns) {
  int32_t tiles = 0;
  for (int i = 0; i <= SKALD_GROUP; i++) {
    g.first[i] = tiles;
    if (i < count) tiles += int32_t(blocks_of(g.product[i].n, columns));
  }
  for (int i = count; i < SKALD_GROUP; i++) g.first[i] = INT32_MAX;  // never reached
  return unsigned(tiles);
}

// The products themselves; z is batch times phases.
int product_bf16(const Shape &s, Group &g, int count, int rows, unsigned z, void *stream);
int product_float(int t, int w, const Shape &s, Group &g, int count, int rows, unsigned z, void *stream);

// Rows up to which the kernels for few rows are used, for matrix products.
constexpr int kFewRows = 64;

}  // namespace skald

#endif
