// cuda_emu.h stands in for CUDA's headers, so that the same kernel files compile as C++
// for a processor. It has what the kernels use and no more.
#ifndef SKALD_CUDA_EMU_H
#define SKALD_CUDA_EMU_H

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "emu.h"
#include "formats.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __constant__ static const

#define threadIdx (::emu::self->index)
#define blockIdx (::emu::position().index)
#define blockDim (::emu::position().dim)
#define gridDim (::emu::position().grid)

// Kernels declare shared memory with these two, so that every block has its own.
#define SKALD_SHARED(T, name, dims)                                           \
  typedef T name##_type dims;                                                 \
  static const char name##_key = 0;                                           \
  name##_type &name = *static_cast<name##_type *>(                            \
      ::emu::static_shared(&name##_key, sizeof(name##_type), alignof(name##_type)))
#define SKALD_DYNAMIC_SHARED(name) unsigned char *const name = static_cast<unsigned char *>(::emu::dynamic_shared())

#define __syncthreads() ::emu::block_barrier(__FILE__, __LINE__)
#define __syncthreads_or(p) (::emu::block_count((p), __FILE__, __LINE__) != 0)
#define __syncthreads_count(p) ::emu::block_count((p), __FILE__, __LINE__)

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// The 16-bit types store; arithmetic is done in float.
struct __nv_bfloat16 {
  uint16_t bits;
};
struct __half {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 v) { return emu::from_bf16(v.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return {emu::to_bf16(f)}; }
inline float __half2float(__half v) { return emu::from_half(v.bits); }
inline __half __float2half_rn(float f) { return {emu::to_half(f)}; }

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline unsigned __float_as_uint(float f) { return emu::bits_of(f); }
inline float __uint_as_float(unsigned u) { return emu::float_of(u); }
inline long long __double_as_longlong(double d) {
  long long v;
  std::memcpy(&v, &d, sizeof v);
  return v;
}
inline double __longlong_as_double(long long v) {
  double d;
  std::memcpy(&d, &v, sizeof d);
  return d;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __popc(unsigned u) { return __builtin_popcount(u); }
inline int __ffs(int u) { return __builtin_ffs(u); }
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
using std::max;
using std::min;

// ---- warps ----

namespace emu {

struct Exchange {
  uint32_t value, result;
  unsigned from;
};
void run_exchange(void **args, unsigned mask);
void run_ballot(void **args, unsigned mask);
void run_nothing(void **args, unsigned mask);

template <class T> inline T exchange(unsigned mask, T v, unsigned from, const char *name) {
  static_assert(sizeof(T) == 4, "32-bit values");
  Exchange e{0, 0, from};
  std::memcpy(&e.value, &v, 4);
  warp_collective(mask, run_exchange, name, &e);
  std::memcpy(&v, &e.result, 4);
  return v;
}

}  // namespace emu

template <class T> inline T __shfl_sync(unsigned mask, T v, int from) {
  return emu::exchange(mask, v, unsigned(from) & 31, "__shfl_sync");
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int bits) {
  return emu::exchange(mask, v, emu::self->lane ^ unsigned(bits), "__shfl_xor_sync");
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by) {
  const unsigned lane = emu::self->lane;
  return emu::exchange(mask, v, lane + by < 32 ? lane + by : lane, "__shfl_down_sync");
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by) {
  const unsigned lane = emu::self->lane;
  return emu::exchange(mask, v, lane >= by ? lane - by : lane, "__shfl_up_sync");
}
inline unsigned __ballot_sync(unsigned mask, bool predicate) {
  emu::Exchange e{predicate, 0, 0};
  emu::warp_collective(mask, emu::run_ballot, "__ballot_sync", &e);
  return e.result;
}
inline void __syncwarp(unsigned mask = 0xffffffff) {
  emu::warp_collective(mask, emu::run_nothing, "__syncwarp", nullptr);
}

// ---- atomics: blocks run side by side ----

template <class T> inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
template <class T> inline T atomicCAS(T *p, T expected, T v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

// ---- tensor cores, in the register layouts of the PTX manual ----

namespace emu {

// d[m][n] += a[m] b[n] for M by N tiles of m16n8k16, all in one call, because every call
// changes fibers 32 times.
struct Mma {
  const uint32_t *a, *b;  // [M][4], [N][2]
  float *d;               // [M][N][4]
  int m, n;
};
void run_mma_bf16(void **args, unsigned mask);

struct Ldmatrix {
  const void *row;
  uint32_t *registers;  // 4
};
void run_ldmatrix(void **args, unsigned mask);
void run_ldmatrix_trans(void **args, unsigned mask);

}  // namespace emu

#endif
