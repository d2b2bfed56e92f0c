// A CUDA driver for tests: one device whose memory is the host's and whose kernels are
// those of the emulation. It has the functions that package cuda uses; all others, in
// missing.c, say that they are not supported.
//
// Where that finds mistakes it is stricter than a driver: new memory holds bytes of 0xff,
// a copy must lie within one allocation, a call needs a current context on its thread, and
// what is queued runs when something waits for it.
#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fake.h"

// emu.h and cuda.h both define vector types, so what is needed is declared here.
namespace emu {
int enqueue(void *stream, std::function<int()> work);
int synchronize();
void require_context(bool (*current)());
void fail_launch(int nth, int error, bool when_it_runs);
void set_seed(uint64_t seed);
void reset();
}  // namespace emu

namespace {

struct Event {
  std::atomic<bool> passed{true}, asked{false};
};

std::mutex mutex;  // guards what follows
std::map<CUdeviceptr, size_t> memory;
std::map<void *, size_t> pinned;
std::set<CUstream> streams;
std::set<CUevent> events;
size_t used;
int contexts, refuse_in;

thread_local CUcontext current;
char context_object;
CUcontext primary() { return reinterpret_cast<CUcontext>(&context_object); }
bool has_context() { return current != nullptr; }
#define NEEDS_CONTEXT \
  if (!current) return CUDA_ERROR_INVALID_CONTEXT

long setting(const char *name, long otherwise) {
  const char *v = std::getenv(name);
  return v && *v ? std::strtol(v, nullptr, 10) : otherwise;
}
size_t total() { return size_t(setting("SKALD_FAKE_MEMORY_MIB", 8 << 10)) << 20; }

// Whether this resource, asked for under the mutex, is the one to refuse.
bool refused() { return refuse_in && --refuse_in == 0; }

void *host(CUdeviceptr p) { return reinterpret_cast<void *>(p); }

bool inside(CUdeviceptr p, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = memory.upper_bound(p);
  if (it == memory.begin()) return false;
  --it;
  return p + bytes <= it->first + it->second;
}

CUresult queue(CUstream s, std::function<int()> work) { return CUresult(emu::enqueue(s, std::move(work))); }
CUresult wait() { return CUresult(emu::synchronize()); }

bool known(CUstream s) {
  std::lock_guard<std::mutex> lock(mutex);
  return streams.count(s) != 0;
}

}  // namespace

extern "C" {

void skald_fake_refuse(int nth) {
  std::lock_guard<std::mutex> lock(mutex);
  refuse_in = nth;
}
void skald_fake_fail_launch(int nth, int error, int when_it_runs) { emu::fail_launch(nth, error, when_it_runs != 0); }
void skald_fake_set_seed(unsigned long long seed) { emu::set_seed(seed); }
skald_fake_counts skald_fake_count(void) {
  std::lock_guard<std::mutex> lock(mutex);
  return {int(memory.size()), int(pinned.size()), int(streams.size()), int(events.size()), contexts, refuse_in};
}

CUresult cuInit(unsigned) {
  emu::require_context(has_context);
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *v) {
  *v = 13000;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
  *n = int(setting("SKALD_FAKE_DEVICES", 1));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *d, int i) {
  *d = 0;
  return i ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *s, int n, CUdevice) {
  strncpy(s, "emulated GPU", size_t(n));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *n, CUdevice) {
  *n = total();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *u, CUdevice) {
  memset(u, 0x5a, sizeof *u);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice) {
  const long capability = setting("SKALD_FAKE_CAPABILITY", 80);
  switch (a) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = int(capability / 10); break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = int(capability % 10); break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 4; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *v = int(setting("SKALD_FAKE_INTEGRATED", 0)); break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice) {
  std::lock_guard<std::mutex> lock(mutex);
  if (refused()) return CUDA_ERROR_OUT_OF_MEMORY;
  contexts++;
  *c = primary();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  CUresult e = wait();
  std::lock_guard<std::mutex> lock(mutex);
  if (contexts == 0) return CUDA_ERROR_INVALID_CONTEXT;
  contexts--;
  return e;
}
// Whatever the context held is gone with it.
CUresult cuDevicePrimaryCtxReset(CUdevice) {
  emu::reset();
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &m : memory) free(host(m.first));
  for (auto &p : pinned) free(p.first);
  for (auto s : streams) free(s);
  for (auto e : events) delete reinterpret_cast<Event *>(e);
  memory.clear();
  pinned.clear();
  streams.clear();
  events.clear();
  used = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  if (c && c != primary()) return CUDA_ERROR_INVALID_CONTEXT;
  current = c;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *available, size_t *all) {
  NEEDS_CONTEXT;
  std::lock_guard<std::mutex> lock(mutex);
  *all = total();
  *available = *all - used;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
  NEEDS_CONTEXT;
  std::lock_guard<std::mutex> lock(mutex);
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  void *q;
  if (refused() || n > total() - used || posix_memalign(&q, 256, n)) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(q, 0xff, n);
  *p = CUdeviceptr(q);
  memory[*p] = n;
  used += n;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) {
  NEEDS_CONTEXT;
  CUresult e = wait();
  std::lock_guard<std::mutex> lock(mutex);
  auto it = memory.find(p);
  if (it == memory.end()) return CUDA_ERROR_INVALID_VALUE;
  used -= it->second;
  memory.erase(it);
  free(host(p));
  return e;
}
CUresult cuMemHostAlloc(void **p, size_t n, unsigned) {
  NEEDS_CONTEXT;
  std::lock_guard<std::mutex> lock(mutex);
  if (refused() || posix_memalign(p, 4096, n)) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(*p, 0xff, n);
  pinned[*p] = n;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *p) {
  NEEDS_CONTEXT;
  CUresult e = wait();
  std::lock_guard<std::mutex> lock(mutex);
  if (!pinned.erase(p)) return CUDA_ERROR_INVALID_VALUE;
  free(p);
  return e;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr d, const void *s, size_t n, CUstream stream) {
  NEEDS_CONTEXT;
  if (!inside(d, n) || !known(stream)) return CUDA_ERROR_INVALID_VALUE;
  return queue(stream, [=] { return memcpy(host(d), s, n), 0; });
}
CUresult cuMemcpyDtoHAsync(void *d, CUdeviceptr s, size_t n, CUstream stream) {
  NEEDS_CONTEXT;
  if (!inside(s, n) || !known(stream)) return CUDA_ERROR_INVALID_VALUE;
  return queue(stream, [=] { return memcpy(d, host(s), n), 0; });
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream stream) {
  NEEDS_CONTEXT;
  if (!inside(d, n) || !known(stream)) return CUDA_ERROR_INVALID_VALUE;
  return queue(stream, [=] { return memset(host(d), v, n), 0; });
}

CUresult cuStreamCreate(CUstream *s, unsigned) {
  NEEDS_CONTEXT;
  std::lock_guard<std::mutex> lock(mutex);
  if (refused()) return CUDA_ERROR_OUT_OF_MEMORY;
  *s = static_cast<CUstream>(malloc(1));
  streams.insert(*s);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) {
  NEEDS_CONTEXT;
  CUresult e = wait();
  std::lock_guard<std::mutex> lock(mutex);
  if (!streams.erase(s)) return CUDA_ERROR_INVALID_HANDLE;
  free(s);
  return e;
}
CUresult cuStreamSynchronize(CUstream s) {
  NEEDS_CONTEXT;
  return known(s) ? wait() : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *e, unsigned) {
  NEEDS_CONTEXT;
  std::lock_guard<std::mutex> lock(mutex);
  if (refused()) return CUDA_ERROR_OUT_OF_MEMORY;
  *e = reinterpret_cast<CUevent>(new Event);
  events.insert(*e);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent e) {
  CUresult r = wait();
  std::lock_guard<std::mutex> lock(mutex);
  if (!events.erase(e)) return CUDA_ERROR_INVALID_HANDLE;
  delete reinterpret_cast<Event *>(e);
  return r;
}
CUresult cuEventRecord(CUevent e, CUstream s) {
  NEEDS_CONTEXT;
  if (!known(s)) return CUDA_ERROR_INVALID_HANDLE;
  auto *event = reinterpret_cast<Event *>(e);
  event->passed = event->asked = false;
  return queue(s, [event] { return event->passed = true, 0; });
}
// The first answer after a record is always "not yet".
CUresult cuEventQuery(CUevent e) {
  auto *event = reinterpret_cast<Event *>(e);
  if (!event->asked.exchange(true)) return CUDA_ERROR_NOT_READY;
  CUresult r = wait();
  return r ? r : event->passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // extern "C"
