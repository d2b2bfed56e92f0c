// The arithmetic of conditions, windows and Euler steps. No multiply-add is fused.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 256;

struct LayerWeights {
  float w[SKALD_LAYERS];
};

template <class T>
__global__ void __launch_bounds__(kThreads) mix_kernel(T *y, const T *x, int64_t rows, int n, LayerWeights weights, int layers, float scale) {
  begin();
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= rows * n) return;
  const T *row = x + at / n * layers * n + at % n;
  float sum = weights.w[0] * widen(row[0]);
  for (int l = 1; l < layers; l++) sum += weights.w[l] * widen(row[int64_t(l) * n]);
  y[at] = narrow<T>(rounded<T>(sum) * scale);
}

template <class T>
__global__ void __launch_bounds__(kThreads) nearest_kernel(T *y, const T *x, int64_t out_rows, int rows, int n, float step) {
  begin();
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= out_rows * n) return;
  const int row = min(int(float(int(at / n)) * step), rows - 1);
  y[at] = x[int64_t(row) * n + at % n];
}

// y [parts, rows, each] from x [rows, parts, each].
template <class T>
__global__ void __launch_bounds__(kThreads) split_kernel(T *y, const T *x, int64_t rows, int parts, int each) {
  begin();
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= rows * parts * each) return;
  const int64_t row = at / each % rows, part = at / each / rows;
  y[at] = x[(row * parts + part) * each + at % each];
}

template <class T>
__global__ void __launch_bounds__(kThreads) blend_kernel(T *x, const T *noise, const T *carry, float noise_weight, float time, int64_t n) {
  begin();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  x[i] = narrow<T>(rounded<T>(noise_weight * widen(noise[i])) + rounded<T>(time * widen(carry[i])));
}

template <class T>
__global__ void __launch_bounds__(kThreads) euler_kernel(T *x, const T *vc, const T *vu, float guidance, float dt, int64_t n) {
  begin();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  float v = widen(vc[i]);
  if (vu) {
    const float u = widen(vu[i]);
    v = rounded<T>(u + rounded<T>(guidance * rounded<T>(v - u)));
  }
  x[i] = narrow<T>(widen(x[i]) + rounded<T>(dt * v));
}

inline Grid ones(int64_t n) { return {dim3(unsigned(blocks_of(n, kThreads))), dim3(kThreads), 0}; }

}  // namespace skald

using namespace skald;

extern "C" int skald_mix_layers(int t, void *y, const void *x, int rows, int n, const float *weights, int layers, float scale,
                                void *stream) {
  if (rows < 0 || n < 0 || layers < 1 || layers > SKALD_LAYERS) return SKALD_INVALID;
  if (rows == 0 || n == 0) return 0;
  LayerWeights w = {};
  for (int l = 0; l < layers; l++) w.w[l] = weights[l];
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("mix_layers", ones(int64_t(rows) * n), stream, mix_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x),
                  int64_t(rows), n, w, layers, scale);
  });
}

extern "C" int skald_nearest_rows(int t, void *y, int out_rows, const void *x, int rows, int n, void *stream) {
  if (out_rows < 0 || rows < 1 || n < 0) return SKALD_INVALID;
  if (out_rows == 0 || n == 0) return 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("nearest_rows", ones(int64_t(out_rows) * n), stream, nearest_kernel<T>, static_cast<T *>(y),
                  static_cast<const T *>(x), int64_t(out_rows), rows, n, float(rows) / float(out_rows));
  });
}

extern "C" int skald_split_channels(int t, void *y, const void *x, int rows, int n, int parts, void *stream) {
  if (rows < 0 || parts < 1 || n < 1 || n % parts != 0) return SKALD_INVALID;
  if (rows == 0) return 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("split_channels", ones(int64_t(rows) * n), stream, split_kernel<T>, static_cast<T *>(y),
                  static_cast<const T *>(x), int64_t(rows), parts, n / parts);
  });
}

extern "C" int skald_blend(int t, void *x, const void *noise, const void *carry, float noise_weight, float time, int64_t n,
                           void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("blend", ones(n), stream, blend_kernel<T>, static_cast<T *>(x), static_cast<const T *>(noise),
                  static_cast<const T *>(carry), noise_weight, time, n);
  });
}

extern "C" int skald_euler_step(int t, void *x, const void *vc, const void *vu, float guidance, float dt, int64_t n,
                                void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("euler_step", ones(n), stream, euler_kernel<T>, static_cast<T *>(x), static_cast<const T *>(vc),
                  static_cast<const T *>(vu), guidance, dt, n);
  });
}
