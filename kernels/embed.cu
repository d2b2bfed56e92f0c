// EmbedSum: a block gathers and adds eight numbers a thread of one row.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 128;

struct Part {
  const void *table;
  int32_t dtype, rows, base;
};
struct Parts {
  Part part[SKALD_PARTS];
};

__device__ __forceinline__ void read_table(float (&v)[8], const Part &p, int64_t at, int n, bool pieces) {
  switch (p.dtype) {
    case SKALD_F32: return read8(v, static_cast<const float *>(p.table) + at, n, pieces);
    case SKALD_BF16: return read8(v, static_cast<const bf16 *>(p.table) + at, n, pieces);
    default: return read8(v, static_cast<const half *>(p.table) + at, n, pieces);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) embed_kernel(T *y, int width, const int32_t *ids, int stride, const __grid_constant__ Parts parts,
                                                         int count, float scale, int32_t *fault, bool pieces) {
  begin();
  const int row = blockIdx.x, i = (int(blockIdx.y) * kThreads + int(threadIdx.x)) * 8;
  ids += int64_t(row) * stride;
  for (int j = 0; j < count; j++) {
    const int64_t at = int64_t(parts.part[j].base) + ids[j];
    if (at < 0 || at >= parts.part[j].rows) {
      if (i == 0) report(fault, SKALD_FAULT_ID, row, j, ids[j]);
      return;
    }
  }
  if (i >= width) return;
  const int m = min(width - i, 8);
  float first[8], sum[8], v[8];
  const auto place = [&](int j) { return (int64_t(parts.part[j].base) + ids[j]) * width + i; };
  read_table(first, parts.part[0], place(0), m, pieces);
  if (count > 1) {
    read_table(sum, parts.part[1], place(1), m, pieces);
    for (int j = 2; j < count; j++) {
      read_table(v, parts.part[j], place(j), m, pieces);
#pragma unroll
      for (int l = 0; l < 8; l++) sum[l] += v[l];
    }
#pragma unroll
    for (int l = 0; l < 8; l++) first[l] = rounded<T>(first[l] + rounded<T>(sum[l])) * scale;
  }
  write8(y + int64_t(row) * width + i, first, m, pieces);
}

inline bool table_in_pieces(const skald_weight &w, int64_t width) {
  return w.dtype == SKALD_F32 ? in_pieces<float>(w.data, width) : in_pieces<bf16>(w.data, width);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_embed_sum(int t, void *y, int rows, int width, const int32_t *ids, int stride, const skald_part *parts,
                               int count, float scale, int32_t *fault, void *stream) {
  if (rows < 0 || width < 0 || count < 1 || count > SKALD_PARTS || stride < count) return SKALD_INVALID;
  if (rows == 0 || width == 0) return 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    Parts own = {};
    bool pieces = in_pieces<T>(y, width);
    for (int j = 0; j < count; j++) {
      const skald_weight &w = parts[j].table;
      if (w.dtype != SKALD_F32 && w.dtype != SKALD_BF16 && w.dtype != SKALD_F16) return int(SKALD_INVALID);
      own.part[j] = {w.data, w.dtype, parts[j].rows, parts[j].base};
      pieces = pieces && table_in_pieces(w, width);
    }
    const Grid g{dim3(unsigned(rows), unsigned(blocks_of(width, 8 * kThreads))), dim3(kThreads), 0};
    return launch("embed_sum", g, stream, embed_kernel<T>, static_cast<T *>(y), width, ids, stride, own, count, scale, fault, pieces);
  });
}
