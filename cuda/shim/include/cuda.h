// This folder goes before the toolkit's on the include path, and this header wraps the
// toolkit's cuda.h: gorgonia.org/cu was written for CUDA 11, and CUDA 13 gave five of the
// functions it calls another argument list under the same name. Here the old lists call
// the new functions.
#ifndef SKALD_SHIM_CUDA_H
#define SKALD_SHIM_CUDA_H
#include_next <cuda.h>

#if CUDA_VERSION >= 13000
static inline CUmemLocation skald_location(CUdevice d) {
  CUmemLocation l = {0};
  l.type = d < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  l.id = d < 0 ? 0 : d;
  return l;
}
static inline CUresult skald_cuCtxCreate(CUcontext *c, unsigned flags, CUdevice d) {
  return cuCtxCreate(c, NULL, flags, d);
}
static inline CUresult skald_cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise a, CUdevice d) {
  return cuMemAdvise(p, n, a, skald_location(d));
}
static inline CUresult skald_cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice d, CUstream s) {
  return cuMemPrefetchAsync(p, n, skald_location(d), 0, s);
}
static inline CUresult skald_cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
  return cuGraphAddDependencies(g, from, to, NULL, n);
}
static inline CUresult skald_cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n) {
  return cuGraphGetEdges(g, from, to, NULL, n);
}
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#define cuCtxCreate skald_cuCtxCreate
#define cuMemAdvise skald_cuMemAdvise
#define cuMemPrefetchAsync skald_cuMemPrefetchAsync
#define cuGraphAddDependencies skald_cuGraphAddDependencies
#define cuGraphGetEdges skald_cuGraphGetEdges
#endif

#endif
