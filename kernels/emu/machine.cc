#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emu {

__thread Thread *self;

static Lane *current() { return static_cast<Lane *>(self); }

Machine &machine() {
  static thread_local Machine m;
  return m;
}

Block::~Block() {
  for (Shared &s : shared) std::free(s.memory);
  std::free(dynamic);
}

Machine::~Machine() {
  for (auto &l : lanes_) l->stack.destroy();
}

uint32_t Machine::random() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return uint32_t(state_ >> 32);
}

void Machine::push(Lane *l) {
  l->at = At::kReady;
  ring_[(head_ + ready_++) & (ring_.size() - 1)] = l;
}

Lane *Machine::pop() {
  const size_t mask = ring_.size() - 1;
  if (ahead_) return ring_[(head_ + --ready_) & mask];
  if (shuffle_) std::swap(ring_[head_ & mask], ring_[(head_ + random() % ready_) & mask]);
  Lane *l = ring_[head_ & mask];
  head_ = (head_ + 1) & mask;
  ready_--;
  return l;
}

// Leaves the current lane for one that is ready, or for run().
void Machine::leave(bool last) {
  Lane *from = current(), *to = ready_ ? pop() : nullptr;
  if (to == from) return;
  switches++;
  self = to;
  change(from->stack, to ? to->stack : main_, last);
}

void Machine::stop(const char *text) {
  failure_ = text;
  ready_ = 0;
  leave(true);
  std::abort();  // not reached
}

// Does the work of the call that l waits in, if all lanes of its mask do.
bool Machine::finish_collective(Lane *l) {
  Warp &w = block().warps[l->number / 32];
  const unsigned need = l->mask & w.live;
  if ((w.waiting & need) != need) return false;
  void *args[32];
  for (unsigned m = need; m; m &= m - 1) {
    Lane *other = w.lanes[__builtin_ctz(m)];
    if (other->work != l->work || other->mask != l->mask) {
      fail("thread %u is in %s(0x%08x), thread %u of its warp in %s(0x%08x)", l->number, l->name, l->mask,
           other->number, other->name, other->mask);
    }
    args[other->lane] = other->arg;
  }
  collectives++;
  l->work(args, need);
  w.waiting &= ~need;
  for (unsigned m = need; m; m &= m - 1) {
    Lane *other = w.lanes[__builtin_ctz(m)];
    if (other != self) push(other);
  }
  return true;
}

void Machine::collective(unsigned mask, WarpWork work, const char *name, void *arg) {
  Lane *l = current();
  if (!(mask >> l->lane & 1)) fail("lane %u calls %s with the mask 0x%08x, which leaves it out", l->lane, name, mask);
  l->mask = mask;
  l->work = work;
  l->name = name;
  l->arg = arg;
  l->at = At::kWarp;
  block().warps[l->number / 32].waiting |= 1u << l->lane;
  if (finish_collective(l)) {
    l->at = At::kReady;
  } else {
    leave(false);
  }
}

bool Machine::finish_barrier() {
  Block &b = block();
  if (b.arrived.empty() || b.arrived.size() < b.live) return false;
  b.counted = b.votes;
  b.votes = 0;
  for (Lane *l : b.arrived) {
    if (l != self) push(l);
  }
  b.arrived.clear();
  return true;
}

void Machine::barrier(const char *file, int line) {
  Block &b = block();
  if (b.arrived.empty()) {
    b.file = file;
    b.line = line;
  } else if (b.line != line || std::strcmp(b.file, file) != 0) {
    fail("threads meet in different barriers, %s:%d and %s:%d", b.file, b.line, file, line);
  }
  Lane *l = current();
  l->at = At::kBarrier;
  b.arrived.push_back(l);
  if (finish_barrier()) {
    l->at = At::kReady;
  } else {
    leave(false);
  }
}

void Machine::copy(const Copy &c) {
  if (uintptr_t(c.dst) % c.size || (c.read && uintptr_t(c.src) % c.size)) fail("cp.async: an address is not a multiple of %u", c.size);
  Lane *l = current();
  l->copies.push_back(c);
  if (eager_) {
    std::memcpy(c.dst, c.src, c.read);
    std::memset(static_cast<char *>(c.dst) + c.read, 0, c.size - c.read);
    l->copies.pop_back();
  }
}

void Machine::entry() {
  Machine &m = machine();
  arrived(&m.main_);
  m.launch_->thread();
  Lane *l = current();
  Block &b = m.block();
  Warp &w = b.warps[l->number / 32];
  l->at = At::kExit;
  b.live--;
  w.live &= ~(1u << l->lane);
  // Others may have waited for nothing but this one.
  for (unsigned waiting = w.waiting; waiting; waiting &= waiting - 1) {
    Lane *other = w.lanes[__builtin_ctz(waiting)];
    if ((w.waiting >> other->lane & 1) && (other->mask >> l->lane & 1)) m.finish_collective(other);
  }
  m.finish_barrier();
  m.leave(true);
  std::abort();  // not reached
}

void Machine::prepare(const Launch &launch, unsigned number) {
  Block &b = *block_;
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  b.index = {number % launch.grid.x, number / launch.grid.x % launch.grid.y, number / launch.grid.x / launch.grid.y};
  b.grid = launch.grid;
  b.dim = launch.block;
  b.live = threads;
  b.warps.resize((threads + 31) / 32);
  b.shared_bytes = launch.shared;
  if (launch.shared) {
    if (posix_memalign(&b.dynamic, 128, launch.shared)) std::abort();
    std::memset(b.dynamic, 0xff, launch.shared);
  }
  while (lanes_.size() < threads) {
    lanes_.emplace_back(new Lane);
    lanes_.back()->stack.create();
  }
  while (ring_.size() < threads + 1) ring_.resize(ring_.empty() ? 64 : 2 * ring_.size());
  head_ = ready_ = 0;
  for (unsigned t = 0; t < threads; t++) {
    Lane *l = lanes_[t].get();
    l->index = {t % launch.block.x, t / launch.block.x % launch.block.y, t / launch.block.x / launch.block.y};
    l->lane = t % 32;
    l->number = t;
    l->block = &b;
    l->copies.clear();
    l->groups.clear();
    l->stack.begin(&Machine::entry, t);
    b.warps[t / 32].lanes[l->lane] = l;
    b.warps[t / 32].live |= 1u << l->lane;
    push(l);
  }
}

std::string Machine::run(const Launch &launch, unsigned number, uint64_t seed) {
  Block b;
  block_ = &b;
  launch_ = &launch;
  failure_.clear();
  shuffle_ = seed != 0;
  ahead_ = seed % 3 == 2;
  eager_ = seed % 2 != 0;
  state_ = (seed + 1) * 0x9e3779b97f4a7c15ull + number;
  for (int i = 0; i < 4; i++) random();
  prepare(launch, number);
  main_ = Stack();
  Lane *first = pop();
  self = first;
  change(main_, first->stack, false);
  self = nullptr;
  if (failure_.empty() && b.live) failure_ = stuck();
  block_ = nullptr;
  return failure_;
}

// Says why nothing is ready though threads live.
std::string Machine::stuck() {
  Block &b = *block_;
  const Lane *somebody = nullptr;
  unsigned in_warp = 0;
  for (Warp &w : b.warps) {
    for (unsigned m = w.live; m; m &= m - 1) {
      Lane *l = w.lanes[__builtin_ctz(m)];
      if (l->at == At::kWarp) {
        in_warp++;
        somebody = l;
      }
    }
  }
  char text[400];
  std::snprintf(text, sizeof text, "block (%u,%u,%u) is stuck: %zu threads wait in the barrier %s:%d, %u in %s (thread %u among them), %zu have left",
                b.index.x, b.index.y, b.index.z, b.arrived.size(), b.file ? b.file : "", b.line, in_warp,
                somebody ? somebody->name : "no warp's call", somebody ? somebody->number : 0,
                size_t(b.dim.x) * b.dim.y * b.dim.z - b.live);
  return text;
}

// ---- what kernels call ----

void fail(const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  machine().stop(text);
}

void warp_collective(unsigned mask, WarpWork work, const char *name, void *arg) { machine().collective(mask, work, name, arg); }

void block_barrier(const char *file, int line) { machine().barrier(file, line); }

int block_count(bool predicate, const char *file, int line) {
  Block &b = machine().block();
  b.votes += predicate;
  machine().barrier(file, line);
  const int n = b.counted;
  machine().barrier(file, line);  // before anybody votes again
  return n;
}

void *static_shared(const void *key, size_t size, size_t align) {
  Block &b = machine().block();
  for (Block::Shared &s : b.shared) {
    if (s.key == key) return s.memory;
  }
  b.shared_bytes += size;
  if (b.shared_bytes > kSharedBytes) fail("%zu bytes of shared memory, the smallest target has %zu", b.shared_bytes, kSharedBytes);
  void *p = nullptr;
  if (posix_memalign(&p, align < 16 ? 16 : align, size)) std::abort();
  std::memset(p, 0xff, size);
  b.shared.push_back({key, p});
  return p;
}

void *dynamic_shared() { return machine().block().dynamic; }

void cp_async(void *dst, const void *src, unsigned size, unsigned read) { machine().copy({dst, src, size, read}); }

void cp_async_commit() {
  Lane *l = current();
  l->groups.push_back(std::move(l->copies));
  l->copies.clear();
}

void cp_async_wait(size_t pending) {
  Lane *l = current();
  for (; l->groups.size() > pending; l->groups.pop_front()) {
    for (const Copy &c : l->groups.front()) {
      std::memcpy(c.dst, c.src, c.read);
      std::memset(static_cast<char *>(c.dst) + c.read, 0, c.size - c.read);
    }
  }
}

}  // namespace emu
