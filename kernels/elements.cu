// Element-wise operations: each thread does eight numbers.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 256;

template <class T> __global__ void __launch_bounds__(kThreads) silu_kernel(T *y, const T *x, int64_t n, bool pieces) {
  begin();
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (i >= n) return;
  const int m = int(min(n - i, int64_t(8)));
  float v[8];
  read8(v, x + i, m, pieces);
#pragma unroll
  for (float &a : v) a = silu(a);
  write8(y + i, v, m, pieces);
}

template <class T> __global__ void __launch_bounds__(kThreads) tanh_kernel(T *y, const T *x, int64_t n, bool pieces) {
  begin();
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (i >= n) return;
  const int m = int(min(n - i, int64_t(8)));
  float v[8];
  read8(v, x + i, m, pieces);
#pragma unroll
  for (float &a : v) a = tanhf(a);
  write8(y + i, v, m, pieces);
}

// y = r(r(silu(gate)) * up), over rows of n numbers that begin step after each other.
template <class T>
__global__ void __launch_bounds__(kThreads) gate_kernel(T *y, const T *gate, const T *up, int64_t rows, int64_t n, int64_t step, bool pieces) {
  begin();
  const int64_t each = (n + 7) / 8, at = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = at / each, i = at % each * 8;
  if (row >= rows) return;
  const int m = int(min(n - i, int64_t(8)));
  float g[8], u[8];
  read8(g, gate + row * step + i, m, pieces);
  read8(u, up + row * step + i, m, pieces);
#pragma unroll
  for (int j = 0; j < 8; j++) u[j] = rounded<T>(silu(g[j])) * u[j];
  write8(y + row * n + i, u, m, pieces);
}

template <class T>
__global__ void __launch_bounds__(kThreads) add_kernel(T *y, const T *a, const T *b, int64_t rows, int64_t n, bool pieces) {
  begin();
  const int64_t each = (n + 7) / 8, at = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = at / each, i = at % each * 8;
  if (row >= rows) return;
  const int m = int(min(n - i, int64_t(8)));
  float u[8], v[8];
  read8(u, a + row * n + i, m, pieces);
  read8(v, b + i, m, pieces);
#pragma unroll
  for (int j = 0; j < 8; j++) u[j] = u[j] + v[j];
  write8(y + row * n + i, u, m, pieces);
}

// out is zero before; the first number that is not finite stays, whatever comes first.
template <class T> __global__ void __launch_bounds__(kThreads) finite_kernel(int32_t *out, const T *x, int64_t n, bool pieces) {
  begin();
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (i >= n) return;
  float v[8];
  read8(v, x + i, int(min(n - i, int64_t(8))), pieces);
  int bad = 8;
#pragma unroll
  for (int j = 7; j >= 0; j--) {
    if (!(fabsf(v[j]) < INFINITY)) bad = j;
  }
  if (bad == 8) return;
  const int32_t mine = int32_t(i + bad + 1);
  for (int32_t old = 0;;) {
    const int32_t seen = atomicCAS(out, old, mine);
    if (seen == old || (seen != 0 && seen < mine)) return;
    old = seen;
  }
}

inline Grid eights(int64_t n) { return {dim3(unsigned(blocks_of(n, 8 * kThreads))), dim3(kThreads), 0}; }
inline Grid eights(int64_t rows, int64_t n) { return {dim3(unsigned(blocks_of(rows * blocks_of(n, 8), kThreads))), dim3(kThreads), 0}; }

template <class T> int gate(const char *name, void *y, const void *g, const void *u, int64_t rows, int64_t n, int64_t step, void *stream) {
  const bool pieces = in_pieces<T>(y, n) && in_pieces<T>(g, step) && in_pieces<T>(u, step);
  return launch(name, eights(rows, n), stream, gate_kernel<T>, static_cast<T *>(y), static_cast<const T *>(g),
                static_cast<const T *>(u), rows, n, step, pieces);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_silu(int t, void *y, const void *x, int64_t n, void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("silu", eights(n), stream, silu_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x), n,
                  in_pieces<T>(y, 0) && in_pieces<T>(x, 0));
  });
}

extern "C" int skald_tanh(int t, void *y, const void *x, int64_t n, void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("tanh", eights(n), stream, tanh_kernel<T>, static_cast<T *>(y), static_cast<const T *>(x), n,
                  in_pieces<T>(y, 0) && in_pieces<T>(x, 0));
  });
}

extern "C" int skald_swiglu(int t, void *y, const void *gate, const void *up, int64_t n, void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const bool pieces = in_pieces<T>(y, 0) && in_pieces<T>(gate, 0) && in_pieces<T>(up, 0);
    return launch("swiglu", eights(n), stream, gate_kernel<T>, static_cast<T *>(y), static_cast<const T *>(gate),
                  static_cast<const T *>(up), int64_t(1), n, n, pieces);
  });
}

extern "C" int skald_value_silu(int t, void *y, const void *x, int rows, int n, void *stream) {
  if (rows <= 0 || n <= 0) return rows < 0 || n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return gate<T>("value_silu", y, static_cast<const T *>(x) + n, x, rows, n, 2 * int64_t(n), stream);
  });
}

extern "C" int skald_add(int t, void *y, const void *a, const void *b, int64_t rows, int64_t n, void *stream) {
  if (rows <= 0 || n <= 0) return rows < 0 || n < 0 ? SKALD_INVALID : 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    const bool pieces = in_pieces<T>(y, n) && in_pieces<T>(a, n) && in_pieces<T>(b, 0);
    return launch("add", eights(rows, n), stream, add_kernel<T>, static_cast<T *>(y), static_cast<const T *>(a),
                  static_cast<const T *>(b), rows, n, pieces);
  });
}

extern "C" int skald_finite(int t, int32_t *out, const void *x, int64_t n, void *stream) {
  if (n < 0 || n >= INT32_MAX) return SKALD_INVALID;
  if (int e = skald_zero(out, sizeof *out, stream)) return e;
  if (n == 0) return 0;
  return with_float(t, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("finite", eights(n), stream, finite_kernel<T>, out, static_cast<const T *>(x), n, in_pieces<T>(x, 0));
  });
}
