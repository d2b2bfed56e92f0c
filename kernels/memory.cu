// Copies that convert, and zeros.
#include <type_traits>

#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 256;

// A stored number of E exponent and M mantissa bits, eight in all.
template <int E, int M> struct Eight {
  uint8_t bits;
};

template <int E, int M> __device__ __forceinline__ float widen(Eight<E, M> v) {
  const int exponent = v.bits >> M & ((1 << E) - 1), mantissa = v.bits & ((1 << M) - 1);
  constexpr int kBias = (1 << (E - 1)) - 1, kTop = (1 << E) - 1;
  float f;
  if (E == 5 && exponent == kTop) {
    f = mantissa ? NAN : INFINITY;
  } else if (E == 4 && (v.bits & 0x7f) == 0x7f) {
    f = NAN;
  } else if (exponent == 0) {
    f = float(mantissa) * __uint_as_float(unsigned(127 + 1 - kBias - M) << 23);
  } else {
    f = __uint_as_float(unsigned(exponent - kBias + 127) << 23 | unsigned(mantissa) << (23 - M));
  }
  return v.bits >> 7 ? -f : f;
}
__device__ __forceinline__ float widen(double v) { return float(v); }

// Reads a number that may begin at any byte.
template <class T> __device__ __forceinline__ T read_anywhere(const T *p) {
  const unsigned char *bytes = reinterpret_cast<const unsigned char *>(p);
  unsigned char copy[sizeof(T)];
#pragma unroll
  for (size_t i = 0; i < sizeof(T); i++) copy[i] = bytes[i];
  T v;
  memcpy(&v, copy, sizeof(T));
  return v;
}

template <class D, class S>
__global__ void __launch_bounds__(kThreads) copy_kernel(D *dst, const S *src, int64_t n, bool aligned) {
  begin();
  const int64_t first = int64_t(blockIdx.x) * kThreads * 8 + threadIdx.x;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const int64_t i = first + j * kThreads;
    if (i < n) dst[i] = narrow<D>(widen(aligned ? src[i] : read_anywhere(src + i)));
  }
}

// The same type, in pieces of P and the rest in bytes.
template <class P>
__global__ void __launch_bounds__(kThreads) move_kernel(unsigned char *dst, const unsigned char *src, int64_t bytes) {
  begin();
  const int64_t n = bytes / int64_t(sizeof(P)), first = int64_t(blockIdx.x) * kThreads * 4 + threadIdx.x;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int64_t i = first + j * kThreads;
    if (i < n) reinterpret_cast<P *>(dst)[i] = reinterpret_cast<const P *>(src)[i];
  }
  const int64_t i = n * int64_t(sizeof(P)) + first;
  if (i < bytes && first < int64_t(sizeof(P))) dst[i] = src[i];
}

__global__ void __launch_bounds__(kThreads) zero_kernel(unsigned char *dst, int64_t bytes, int64_t head) {
  begin();
  const int64_t n = (bytes - head) / 16, first = int64_t(blockIdx.x) * kThreads * 4 + threadIdx.x;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int64_t i = first + j * kThreads;
    if (i < n) reinterpret_cast<uint4 *>(dst + head)[i] = make_uint4(0, 0, 0, 0);
  }
  if (first < head) dst[first] = 0;
  const int64_t tail = head + n * 16 + first;
  if (first < 16 && tail < bytes) dst[tail] = 0;
}

inline Grid fours(int64_t n) { return {dim3(unsigned(blocks_of(n ? n : 1, 4 * kThreads))), dim3(kThreads), 0}; }

static int move(void *dst, const void *src, int64_t bytes, void *stream) {
  unsigned char *d = static_cast<unsigned char *>(dst);
  const unsigned char *s = static_cast<const unsigned char *>(src);
  const uintptr_t both = reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src);
  if (both % 16 == 0) return launch("copy", fours(bytes / 16), stream, move_kernel<uint4>, d, s, bytes);
  if (both % 4 == 0) return launch("copy", fours(bytes / 4), stream, move_kernel<unsigned>, d, s, bytes);
  return launch("copy", fours(bytes), stream, move_kernel<unsigned char>, d, s, bytes);
}

template <class D, class S> static int convert(void *dst, const void *src, int64_t n, void *stream) {
  const Grid g{dim3(unsigned(blocks_of(n, 8 * kThreads))), dim3(kThreads), 0};
  return launch("convert", g, stream, copy_kernel<D, S>, static_cast<D *>(dst), static_cast<const S *>(src), n,
                reinterpret_cast<uintptr_t>(src) % sizeof(S) == 0);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_copy(int dst_type, void *dst, int src_type, const void *src, int64_t n, void *stream) {
  if (n <= 0) return n < 0 ? SKALD_INVALID : 0;
  if (dst_type == src_type) {
    switch (dst_type) {
      case SKALD_F32: case SKALD_I32: return move(dst, src, 4 * n, stream);
      case SKALD_BF16: case SKALD_F16: return move(dst, src, 2 * n, stream);
    }
    return SKALD_INVALID;
  }
  return with_stored(dst_type, [&](auto *p) {
    using D = SKALD_TYPE(p);
    switch (src_type) {
      case SKALD_F32: return convert<D, float>(dst, src, n, stream);
      case SKALD_BF16: return convert<D, bf16>(dst, src, n, stream);
      case SKALD_F16: return convert<D, half>(dst, src, n, stream);
      case SKALD_F64: return convert<D, double>(dst, src, n, stream);
      case SKALD_F8E4M3: return convert<D, Eight<4, 3>>(dst, src, n, stream);
      case SKALD_F8E5M2: return convert<D, Eight<5, 2>>(dst, src, n, stream);
    }
    return int(SKALD_INVALID);
  });
}

extern "C" int skald_zero(void *dst, size_t bytes, void *stream) {
  if (bytes == 0) return 0;
  const int64_t n = int64_t(bytes), head = min(n, int64_t(-reinterpret_cast<uintptr_t>(dst) % 16));
  return launch("zero", fours(n / 16), stream, zero_kernel, static_cast<unsigned char *>(dst), n, head);
}
