// Graphs, pinned memory and the texts of errors.
#include "device.cuh"

#ifdef SKALD_EMU

#include <cstdlib>

extern "C" int skald_capture_begin(void *stream) { return emu::capture_begin(stream); }
extern "C" int skald_capture_end(void *stream, void **graph) {
  *graph = nullptr;
  return emu::capture_end(stream, graph);
}
extern "C" int skald_graph_launch(void *graph, void *stream) { return emu::graph_launch(graph, stream); }
extern "C" int skald_graph_free(void *graph) { return emu::graph_free(graph); }
extern "C" int skald_graph_nodes(void *graph, size_t *nodes) {
  *nodes = emu::graph_nodes(graph);
  return 0;
}
extern "C" int skald_host_alloc(void **p, size_t bytes) {
  *p = nullptr;
  return posix_memalign(p, 4096, bytes ? bytes : 1) ? 2 : 0;  // cudaErrorMemoryAllocation
}
extern "C" int skald_host_free(void *p) {
  std::free(p);
  return 0;
}
extern "C" int skald_device_count(void) { return 1; }
extern "C" int skald_last_error(void) { return 0; }
extern "C" const char *skald_error(int code) {
  const char *text = emu::message();
  if (code != 0 && *text) return text;
  return code == 0 ? "no error" : code == SKALD_INVALID ? "invalid argument" : "error of the emulated device";
}
extern "C" const char *skald_build(void) { return "emulation"; }

#else

extern "C" int skald_capture_begin(void *stream) {
  // Thread-local: what other threads allocate meanwhile is their business.
  return int(cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeThreadLocal));
}

namespace {
struct Graph {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
};
}  // namespace

extern "C" int skald_capture_end(void *stream, void **graph) {
  *graph = nullptr;
  Graph g = {};
  cudaError_t e = cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &g.graph);
  if (e) return int(e);
  e = cudaGraphInstantiate(&g.exec, g.graph, 0);
  if (e) {
    cudaGraphDestroy(g.graph);
    return int(e);
  }
  *graph = new Graph(g);
  return 0;
}

extern "C" int skald_graph_launch(void *graph, void *stream) {
  return int(cudaGraphLaunch(static_cast<Graph *>(graph)->exec, static_cast<cudaStream_t>(stream)));
}

extern "C" int skald_graph_free(void *graph) {
  Graph *g = static_cast<Graph *>(graph);
  const cudaError_t e = cudaGraphExecDestroy(g->exec), f = cudaGraphDestroy(g->graph);
  delete g;
  return int(e ? e : f);
}

extern "C" int skald_graph_nodes(void *graph, size_t *nodes) {
  return int(cudaGraphGetNodes(static_cast<Graph *>(graph)->graph, nullptr, nodes));
}

extern "C" int skald_host_alloc(void **p, size_t bytes) { return int(cudaHostAlloc(p, bytes, cudaHostAllocPortable)); }
extern "C" int skald_host_free(void *p) { return int(cudaFreeHost(p)); }

extern "C" int skald_device_count(void) {
  int n = 0;
  const cudaError_t e = cudaGetDeviceCount(&n);
  return e ? -int(e) : n;
}
extern "C" int skald_last_error(void) { return int(cudaGetLastError()); }
extern "C" const char *skald_error(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
extern "C" const char *skald_build(void) { return SKALD_BUILD; }

#endif
