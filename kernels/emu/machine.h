// machine.h is one thread of the processor that runs blocks.
#ifndef SKALD_EMU_MACHINE_H
#define SKALD_EMU_MACHINE_H

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "emu.h"
#include "fiber.h"

namespace emu {

constexpr size_t kSharedBytes = 99 << 10;  // of sm_120, the least of all targets

struct Copy {
  void *dst;
  const void *src;
  unsigned size, read;
};

enum class At : uint8_t { kReady, kWarp, kBarrier, kExit };

struct Lane : Thread {
  Stack stack;
  unsigned number;  // in the block
  At at;
  // In a warp's call:
  unsigned mask;
  WarpWork work;
  const char *name;
  void *arg;
  // Asynchronous copies: not committed, and groups that are not awaited.
  std::vector<Copy> copies;
  std::deque<std::vector<Copy>> groups;
};

struct Warp {
  Lane *lanes[32] = {};
  unsigned waiting = 0, live = 0;
};

struct Block : BlockPosition {
  std::vector<Warp> warps;
  struct Shared {
    const void *key;
    void *memory;
  };
  std::vector<Shared> shared;
  size_t shared_bytes = 0;
  void *dynamic = nullptr;
  unsigned live = 0;
  std::vector<Lane *> arrived;  // at the barrier
  const char *file = nullptr;   // of the barrier
  int line = 0;
  int votes = 0, counted = 0;
  ~Block();
};

class Machine {
 public:
  ~Machine();
  // Runs one block. An empty text is success.
  std::string run(const Launch &launch, unsigned number, uint64_t seed);

  void collective(unsigned mask, WarpWork work, const char *name, void *arg);
  void barrier(const char *file, int line);
  void copy(const Copy &c);
  [[noreturn]] void stop(const char *text);
  Block &block() { return *static_cast<Block *>(block_); }

  uint64_t switches = 0, collectives = 0;

 private:
  static void entry();
  void prepare(const Launch &launch, unsigned number);
  void push(Lane *l);
  Lane *pop();
  void leave(bool last);
  bool finish_collective(Lane *l);
  bool finish_barrier();
  std::string stuck();
  uint32_t random();

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane *> ring_;  // a power of two of them
  size_t head_ = 0, ready_ = 0;
  Stack main_;
  const Launch *launch_ = nullptr;
  Block *block_ = nullptr;
  std::string failure_;
  uint64_t state_ = 1;
  // ahead: who became ready last runs first, so that one warp gets far before the others.
  bool shuffle_ = false, ahead_ = false, eager_ = false;
};

// The machine of this thread.
Machine &machine();

}  // namespace emu

#endif
