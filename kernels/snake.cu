// Snake: y = r(x + r(r(1/r(alpha+1e-9)) * r(s*s))), s = r(sin(r(alpha*x))).
#include <type_traits>

#include "functions.cuh"
#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads, 4) snake_kernel(T *y, const T *x, const float *alpha, int64_t rows, int channels, bool pieces) {
  begin();
  const int each = (channels + 7) / 8;
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = at / each;
  const int c = int(at % each) * 8;
  if (row >= rows) return;
  const int m = min(channels - c, 8);
  float v[8], a[8];
  read8(v, x + row * channels + c, m, pieces);
  read8(a, alpha + c, m, pieces);
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const float inverse = rounded<T>(__fdiv_rn(1.0f, rounded<T>(a[j] + 1e-9f)));
    const float s = rounded<T>(sine_exact(rounded<T>(a[j] * v[j])));
    v[j] = v[j] + rounded<T>(inverse * rounded<T>(s * s));
  }
  write8(y + row * channels + c, v, m, pieces);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_snake(int t, void *y, const void *x, const float *alpha, int64_t rows, int channels, void *stream) {
  if (rows <= 0 || channels <= 0) return rows < 0 || channels < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const Grid g{dim3(unsigned(blocks_of(rows * blocks_of(channels, 8), kThreads))), dim3(kThreads), 0};
    return launch("snake", g, stream, snake_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x), alpha, rows, channels,
                  in_pieces<T>(y, channels) && in_pieces<T>(x, channels) && in_pieces<float>(alpha, 0));
  });
}
