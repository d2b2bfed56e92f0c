// RMSNorm and LayerNorm: a block does a row.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

// sum_of adds f over the numbers of a row. The order depends on n alone.
template <class T, class F> __device__ __forceinline__ float sum_of(const T *x, int n, bool pieces, float *red, F f) {
  float sum = 0;
  for (int i = int(threadIdx.x) * 8; i < n; i += int(blockDim.x) * 8) {
    float v[8], part = 0;
    const int m = min(n - i, 8);
    read8(v, x + i, m, pieces);
#pragma unroll
    for (int j = 0; j < 8; j++) part += j < m ? f(v[j]) : 0.0f;
    sum += part;
  }
  return block_sum(sum, red);
}

template <class T>
__global__ void __launch_bounds__(256) rms_norm_kernel(T *y, const T *x, const float *w, int n, float eps, bool pieces) {
  SKALD_SHARED(float, red, [32]);
  begin();
  const int64_t row = int64_t(blockIdx.x) * n;
  const float squares = sum_of(x + row, n, pieces, red, [](float v) { return v * v; });
  const float factor = inverse_root(__fdiv_rn(squares, float(n)) + eps);
  for (int i = int(threadIdx.x) * 8; i < n; i += int(blockDim.x) * 8) {
    float v[8], s[8];
    const int m = min(n - i, 8);
    read8(v, x + row + i, m, pieces);
    read8(s, w + i, m, pieces);
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = rounded<T>(v[j] * factor) * s[j];
    write8(y + row + i, v, m, pieces);
  }
}

template <class T>
__global__ void __launch_bounds__(256) layer_norm_kernel(T *y, const T *x, const float *w, const float *b, int n, float eps, bool pieces) {
  SKALD_SHARED(float, red, [32]);
  begin();
  const int64_t row = int64_t(blockIdx.x) * n;
  const float mean = __fdiv_rn(sum_of(x + row, n, pieces, red, [](float v) { return v; }), float(n));
  const float squares = sum_of(x + row, n, pieces, red, [mean](float v) { return (v - mean) * (v - mean); });
  const float factor = inverse_root(__fdiv_rn(squares, float(n)) + eps);
  for (int i = int(threadIdx.x) * 8; i < n; i += int(blockDim.x) * 8) {
    float v[8], s[8], c[8];
    const int m = min(n - i, 8);
    read8(v, x + row + i, m, pieces);
    read8(s, w + i, m, pieces);
    read8(c, b + i, m, pieces);
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = (v[j] - mean) * factor * s[j] + c[j];
    write8(y + row + i, v, m, pieces);
  }
}

inline Grid rows_of(int rows, int n) { return {dim3(unsigned(rows)), dim3(n <= 256 ? 32 : n <= 1024 ? 128 : 256), 0}; }

}  // namespace skald

using namespace skald;

extern "C" int skald_rms_norm(int t, void *y, const void *x, const float *w, int rows, int n, float eps, void *stream) {
  if (rows <= 0 || n <= 0) return rows < 0 || n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const bool pieces = in_pieces<T>(y, n) && in_pieces<T>(x, n) && in_pieces<float>(w, 0);
    return launch("rms_norm", rows_of(rows, n), stream, rms_norm_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x), w,
                  n, eps, pieces);
  });
}

extern "C" int skald_layer_norm(int t, void *y, const void *x, const float *w, const float *b, int rows, int n, float eps,
                                void *stream) {
  if (rows <= 0 || n <= 0) return rows < 0 || n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const bool pieces = in_pieces<T>(y, n) && in_pieces<T>(x, n) && in_pieces<float>(w, 0) && in_pieces<float>(b, 0);
    return launch("layer_norm", rows_of(rows, n), stream, layer_norm_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x),
                  w, b, n, eps, pieces);
  });
}
