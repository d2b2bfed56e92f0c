// Streams, graphs, and the threads that run the blocks of a launch.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "machine.h"

namespace emu {

namespace {

using Work = std::function<int()>;
using Graph = std::vector<Work>;

constexpr size_t kQueued = 1024;  // a device's queue has an end, too

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *v = std::getenv(name);
  return v ? std::strtoull(v, nullptr, 10) : otherwise;
}

// One emulated device for the process. It lives until the process ends: workers may
// still look at it then.
struct Device {
  std::mutex queue;  // guards what follows
  std::deque<Work> work;
  std::map<void *, Graph *> captures;
  int sticky = 0;
  std::string message, shown;
  int fail_in = 0, fail_error = 0;
  bool fail_later = false;

  std::mutex order;  // one thread runs the queue at a time
  const bool eager = setting("SKALD_EMU_EAGER", 0) != 0;
  std::atomic<uint64_t> seed{setting("SKALD_EMU_SEED", 0)};
  bool (*context)() = nullptr;
  std::atomic<uint64_t> launches{0}, threads{0}, switches{0}, collectives{0};

  // The launch that runs, and who works on it.
  std::mutex pool;
  std::condition_variable wake, done;
  std::atomic<unsigned> workers{unsigned(setting("SKALD_EMU_WORKERS", std::min(8u, std::thread::hardware_concurrency())))};
  unsigned started = 0, busy = 0;
  uint64_t round = 0;
  const Launch *launch = nullptr;
  const std::vector<unsigned> *blocks = nullptr;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::string failure;
};

Device &device() {
  static Device *d = new Device;
  return *d;
}

// Signals that are not the fault of the code must not find a thread on a fiber's stack.
void hold_signals(sigset_t *before) {
  sigset_t all;
  sigfillset(&all);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, s);
  pthread_sigmask(SIG_SETMASK, &all, before);
}

void run_blocks() {
  Device &d = device();
  Machine &m = machine();
  for (size_t i; !d.failed && (i = d.next++) < d.blocks->size();) {
    std::string failure = m.run(*d.launch, (*d.blocks)[i], d.seed);
    if (!failure.empty()) {
      std::lock_guard<std::mutex> lock(d.pool);
      if (!d.failed.exchange(true)) d.failure = std::string(d.launch->name) + ": " + failure;
    }
  }
  d.switches += m.switches;
  d.collectives += m.collectives;
  m.switches = m.collectives = 0;
}

void worker() {
  sigset_t before;
  hold_signals(&before);
  Device &d = device();
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(d.pool);
  for (;;) {
    d.wake.wait(lock, [&] { return d.round != seen; });
    seen = d.round;
    lock.unlock();
    run_blocks();
    lock.lock();
    if (--d.busy == 0) d.done.notify_one();
  }
}

int run(const Launch &l) {
  Device &d = device();
  const unsigned n = l.grid.x * l.grid.y * l.grid.z;
  std::vector<unsigned> blocks(n);
  for (unsigned i = 0; i < n; i++) blocks[i] = i;
  if (d.seed) {
    uint64_t x = d.seed * 0x9e3779b97f4a7c15ull + 77;
    for (unsigned i = n; i > 1; i--) {
      x = x * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(blocks[i - 1], blocks[(x >> 33) % i]);
    }
  }
  d.launch = &l;
  d.blocks = &blocks;
  d.next = 0;
  d.failed = false;
  d.launches++;
  d.threads += uint64_t(n) * l.block.x * l.block.y * l.block.z;
  sigset_t before;
  hold_signals(&before);
  const bool together = n > 1 && d.workers > 1;
  if (together) {
    std::lock_guard<std::mutex> lock(d.pool);
    for (; d.started + 1 < d.workers; d.started++) std::thread(worker).detach();
    d.busy = d.started;
    d.round++;
    d.wake.notify_all();
  }
  run_blocks();
  if (together) {
    std::unique_lock<std::mutex> lock(d.pool);
    d.done.wait(lock, [&] { return d.busy == 0; });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!d.failed) return 0;
  std::lock_guard<std::mutex> lock(d.queue);
  d.message = d.failure;
  return kLaunchFailure;
}

int refuse(const Launch &l) {
  const unsigned threads = l.block.x * l.block.y * l.block.z;
  if (threads >= 1 && threads <= 1024 && l.block.z <= 64 && l.shared <= kSharedBytes && l.grid.x && l.grid.x < 1u << 31 &&
      l.grid.y && l.grid.y < 65536 && l.grid.z && l.grid.z < 65536) {
    return 0;
  }
  std::lock_guard<std::mutex> lock(device().queue);
  device().message = std::string(l.name) + ": no device takes this grid, block or shared memory";
  return kInvalidConfiguration;
}

}  // namespace

int launch(Launch l, void *stream) {
  Device &d = device();
  if (d.context && !d.context()) return kInvalidContext;
  if (int e = refuse(l)) return e;
  int later = 0;
  {
    std::lock_guard<std::mutex> lock(d.queue);
    if (d.fail_in && --d.fail_in == 0) {
      d.message = std::string(l.name) + ": made to fail";
      if (!d.fail_later) return d.fail_error;
      later = d.fail_error;
    }
  }
  auto p = std::make_shared<Launch>(std::move(l));
  return enqueue(stream, [p, later] { return later ? later : run(*p); });
}

int enqueue(void *stream, Work work) {
  Device &d = device();
  bool now;
  {
    std::lock_guard<std::mutex> lock(d.queue);
    if (d.sticky) return d.sticky;
    auto capture = d.captures.find(stream);
    if (capture != d.captures.end()) {
      capture->second->push_back(std::move(work));
      return 0;
    }
    d.work.push_back(std::move(work));
    now = d.eager || d.work.size() >= kQueued;
  }
  return now ? synchronize() : 0;
}

int synchronize() {
  Device &d = device();
  std::lock_guard<std::mutex> order(d.order);
  for (;;) {
    Work w;
    {
      std::lock_guard<std::mutex> lock(d.queue);
      if (d.sticky) d.work.clear();
      if (d.work.empty()) return d.sticky;
      w = std::move(d.work.front());
      d.work.pop_front();
    }
    if (int e = w()) {
      std::lock_guard<std::mutex> lock(d.queue);
      d.sticky = e;
    }
  }
}

int capture_begin(void *stream) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.queue);
  if (!stream || d.captures.count(stream)) return kCaptureUnsupported;
  d.captures[stream] = new Graph;
  return 0;
}

int capture_end(void *stream, void **graph) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.queue);
  auto capture = d.captures.find(stream);
  if (capture == d.captures.end()) return kCaptureUnsupported;
  *graph = capture->second;
  d.captures.erase(capture);
  return 0;
}

int graph_launch(void *graph, void *stream) {
  for (const Work &w : *static_cast<Graph *>(graph)) {
    if (int e = enqueue(stream, w)) return e;
  }
  return 0;
}

int graph_free(void *graph) {
  delete static_cast<Graph *>(graph);  // what is queued of it holds copies
  return 0;
}

size_t graph_nodes(void *graph) { return static_cast<Graph *>(graph)->size(); }

void set_seed(uint64_t seed) {
  synchronize();
  device().seed = seed;
}
void set_workers(unsigned n) {
  synchronize();
  device().workers = n;
}
void require_context(bool (*current)()) { device().context = current; }

void fail_launch(int nth, int error, bool when_it_runs) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.queue);
  d.fail_in = nth;
  d.fail_error = error;
  d.fail_later = when_it_runs;
}

const char *message() {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.queue);
  d.shown = d.message;
  return d.shown.c_str();
}

void reset() {
  Device &d = device();
  std::lock_guard<std::mutex> order(d.order);
  std::lock_guard<std::mutex> lock(d.queue);
  d.sticky = 0;
  d.message.clear();
  d.work.clear();
  for (auto &c : d.captures) delete c.second;
  d.captures.clear();
}

Counts counts() {
  Device &d = device();
  return {d.launches, d.threads, d.switches, d.collectives};
}

}  // namespace emu
