// device.cuh is CUDA for the kernel files: CUDA itself under nvcc, the emulation of emu/
// otherwise, and thin wrappers that mean the same under both. Inline PTX stands only here.
#ifndef SKALD_DEVICE_CUH
#define SKALD_DEVICE_CUH

#include <stdint.h>

#include "skald_kernels.h"

#ifdef SKALD_EMU
#include "cuda_emu.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define SKALD_SHARED(T, name, dims) __shared__ T name dims
#define SKALD_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#endif

namespace skald {

// ---- launches ----

struct Grid {
  dim3 grid, block;
  size_t shared;  // bytes of dynamic shared memory
};

#ifndef SKALD_EMU
// Whether a kernel may start before the one ahead has ended: needs sm_90. A process uses
// one device, so the answer is kept.
inline bool overlaps() {
  static const bool yes = [] {
    int device = 0, major = 0;
    return !cudaGetDevice(&device) && !cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) && major >= 9;
  }();
  return yes;
}
#endif

// launch queues kernel(args...). Every kernel begins with begin().
template <class... P, class... A>
int launch(const char *name, const Grid &g, void *stream, void (*kernel)(P...), const A &...args) {
#ifdef SKALD_EMU
  return emu::launch({name, g.grid, g.block, g.shared, [=] { kernel(static_cast<P>(args)...); }}, stream);
#else
  (void)name;
  if (g.shared > 48 << 10) {
    const cudaError_t e = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, int(g.shared));
    if (e) return int(e);
  }
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = g.grid;
  config.blockDim = g.block;
  config.dynamicSmemBytes = g.shared;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &overlap;
  config.numAttrs = overlaps() ? 1 : 0;
  return int(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
#endif
}

// begin waits for the kernels ahead on the stream, and then lets the next one be loaded
// while this one runs. Before it a kernel may read weights, and nothing else.
__device__ __forceinline__ void begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- copies into shared memory behind the kernel's back ----

// Copies 16 bytes, or writes 16 zeros when there is nothing to copy.
__device__ __forceinline__ void cp_async16(void *shared, const void *global, bool there) {
#ifdef SKALD_EMU
  emu::cp_async(shared, global, 16, there ? 16 : 0);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(there ? 16 : 0)
               : "memory");
#endif
}
__device__ __forceinline__ void cp_async_commit() {
#ifdef SKALD_EMU
  emu::cp_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until no more than N of this thread's groups are under way.
template <int N> __device__ __forceinline__ void cp_async_wait() {
#ifdef SKALD_EMU
  emu::cp_async_wait(N);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// Reads 16 bytes that nobody writes while the kernel runs, and that no block reads again.
__device__ __forceinline__ uint4 read_once16(const void *p) {
#ifdef SKALD_EMU
  return *static_cast<const uint4 *>(p);
#else
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
#endif
}

// ---- tensor cores ----

// d[i][j] += a[i] b[j] for M by N tiles of m16n8k16, bfloat16 in, float32 out.
template <int M, int N>
__device__ __forceinline__ void mma_bf16(float (&d)[M][N][4], const unsigned (&a)[M][4], const unsigned (&b)[N][2]) {
#ifdef SKALD_EMU
  emu::Mma x{&a[0][0], &b[0][0], &d[0][0][0], M, N};
  emu::warp_collective(0xffffffff, emu::run_mma_bf16, "mma", &x);
#else
#pragma unroll
  for (int i = 0; i < M; i++) {
#pragma unroll
    for (int j = 0; j < N; j++) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]), "+f"(d[i][j][3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
    }
  }
#endif
}

// Loads four 8x8 tiles of 16-bit numbers; lane i gives the address of row i%8 of tile i/8.
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const void *row) {
#ifdef SKALD_EMU
  emu::Ldmatrix x{row, r};
  emu::warp_collective(0xffffffff, emu::run_ldmatrix, "ldmatrix", &x);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(unsigned(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}
__device__ __forceinline__ void ldmatrix_trans(unsigned (&r)[4], const void *row) {
#ifdef SKALD_EMU
  emu::Ldmatrix x{row, r};
  emu::warp_collective(0xffffffff, emu::run_ldmatrix_trans, "ldmatrix.trans", &x);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(unsigned(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}

// ---- reductions, in an order that depends on nothing ----

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}

// Sums v over a block of whole warps; all threads get the sum. red holds a float a warp.
__device__ __forceinline__ float block_sum(float v, float *red) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? red[threadIdx.x % 32] : 0.0f;
  v = warp_sum(v);
  __syncthreads();  // red may be written again
  return v;
}

// ---- faults ----

// Keeps the first fault: see skald_kernels.h.
__device__ __forceinline__ void report(int32_t *fault, int32_t what, int32_t a, int32_t b, int32_t c) {
  if (!fault || atomicCAS(fault, 0, what) != 0) return;
  fault[1] = a;
  fault[2] = b;
  fault[3] = c;
}

}  // namespace skald

#endif
