// numbers.cuh has the types of numbers: how they are read, rounded and written. All
// arithmetic is float32, and exact to the operation: the files are compiled without
// contraction, and __fmaf_rn stands where one rounding is meant.
#ifndef SKALD_NUMBERS_CUH
#define SKALD_NUMBERS_CUH

#include "device.cuh"

namespace skald {

using bf16 = __nv_bfloat16;
using half = __half;

__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ float widen(bf16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float widen(half v) { return __half2float(v); }

template <class T> __device__ __forceinline__ T narrow(float v);
template <> __device__ __forceinline__ float narrow<float>(float v) { return v; }
template <> __device__ __forceinline__ bf16 narrow<bf16>(float v) { return __float2bfloat16_rn(v); }
template <> __device__ __forceinline__ half narrow<half>(float v) { return __float2half_rn(v); }

// r() of the documentation: v rounded to T.
template <class T> __device__ __forceinline__ float rounded(float v) { return widen(narrow<T>(v)); }

__device__ __forceinline__ float low_bf16(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ unsigned pair_bf16(bf16 low, bf16 high) {
  unsigned short l, h;
  memcpy(&l, &low, 2);
  memcpy(&h, &high, 2);
  return unsigned(h) << 16 | l;
}

// ---- eight numbers at a time ----

// May p be read in 16-byte pieces, when each row begins step numbers after the last?
template <class T> inline bool in_pieces(const void *p, int64_t step) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && step * int64_t(sizeof(T)) % 16 == 0;
}

// Reads n of eight numbers from p; the others are zero. pieces: all eight in 16-byte pieces
// if n is 8.
template <class T> __device__ __forceinline__ void read8(float (&v)[8], const T *p, int n, bool pieces);

template <class T> __device__ __forceinline__ void read8_each(float (&v)[8], const T *p, int n) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = i < n ? widen(p[i]) : 0.0f;
}
template <> __device__ __forceinline__ void read8(float (&v)[8], const float *p, int n, bool pieces) {
  if (!pieces || n < 8) return read8_each(v, p, n);
  const float4 a = *reinterpret_cast<const float4 *>(p), b = *reinterpret_cast<const float4 *>(p + 4);
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}
template <> __device__ __forceinline__ void read8(float (&v)[8], const bf16 *p, int n, bool pieces) {
  if (!pieces || n < 8) return read8_each(v, p, n);
  const uint4 a = *reinterpret_cast<const uint4 *>(p);
  const unsigned pairs[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
  for (int i = 0; i < 4; i++) v[2 * i] = low_bf16(pairs[i]), v[2 * i + 1] = high_bf16(pairs[i]);
}
template <> __device__ __forceinline__ void read8(float (&v)[8], const half *p, int n, bool pieces) {
  if (!pieces || n < 8) return read8_each(v, p, n);
  const uint4 a = *reinterpret_cast<const uint4 *>(p);
  half h[8];
  memcpy(h, &a, 16);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = widen(h[i]);
}

// Writes n of eight numbers to p, rounding.
template <class T> __device__ __forceinline__ void write8(T *p, const float (&v)[8], int n, bool pieces);

template <class T> __device__ __forceinline__ void write8_each(T *p, const float (&v)[8], int n) {
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (i < n) p[i] = narrow<T>(v[i]);
  }
}
template <> __device__ __forceinline__ void write8(float *p, const float (&v)[8], int n, bool pieces) {
  if (!pieces || n < 8) return write8_each(p, v, n);
  *reinterpret_cast<float4 *>(p) = make_float4(v[0], v[1], v[2], v[3]);
  *reinterpret_cast<float4 *>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}
template <> __device__ __forceinline__ void write8(bf16 *p, const float (&v)[8], int n, bool pieces) {
  if (!pieces || n < 8) return write8_each(p, v, n);
  unsigned pairs[4];
#pragma unroll
  for (int i = 0; i < 4; i++) pairs[i] = pair_bf16(narrow<bf16>(v[2 * i]), narrow<bf16>(v[2 * i + 1]));
  *reinterpret_cast<uint4 *>(p) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// ---- functions ----

// x / (1 + exp(-x)), without an overflow on either side. Minus infinity gives NaN.
__device__ __forceinline__ float silu(float x) {
  const float e = expf(-fabsf(x));
  return __fdiv_rn(x < 0.0f ? x * e : x, 1.0f + e);
}

// 1/sqrt(x) in two roundings.
__device__ __forceinline__ float inverse_root(float x) { return __fdiv_rn(1.0f, __fsqrt_rn(x)); }

// ---- host ----

inline int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

// with_float calls f with a null pointer of the type t, or returns SKALD_INVALID.
template <class F> int with_float(int t, F f) {
  switch (t) {
    case SKALD_F32: return f(static_cast<float *>(nullptr));
    case SKALD_BF16: return f(static_cast<bf16 *>(nullptr));
  }
  return SKALD_INVALID;
}
// with_stored likewise for the types of weights.
template <class F> int with_stored(int t, F f) {
  if (t == SKALD_F16) return f(static_cast<half *>(nullptr));
  return with_float(t, f);
}
// The type behind the pointer that f gets.
#define SKALD_TYPE(p) typename std::remove_pointer<decltype(p)>::type

}  // namespace skald

#endif
