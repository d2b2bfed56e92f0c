// emu.h is the machine behind cuda_emu.h: a GPU's threads on a processor.
//
// The threads of a block are fibers of one thread of the processor; blocks go to several.
// The last lane to reach a warp intrinsic does its work for all lanes, so shuffles,
// ldmatrix and mma see the registers of a whole warp. It stops a launch, with a sentence
// that says why, at
//   - a barrier or an intrinsic that some thread never reaches,
//   - lanes that meet in different intrinsics, threads that meet in different barriers,
//   - grids, blocks and shared memory that the smallest target has not.
// Shared memory begins as bytes of 0xff, which is NaN in every format. cp.async arrives as
// late as its wait allows, or at once with odd seeds. Seeds other than 0 run threads and
// blocks in random order, or with every third seed (2, 5, ...) one warp as far ahead of the
// others as it gets, so what depends on the order changes with the seed.
// Not modelled: the weak order of memory, time, occupancy, TMA, wgmma.
#ifndef SKALD_EMU_H
#define SKALD_EMU_H

#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace emu {

// ---- for kernels ----

struct Block;
struct Thread {
  uint3 index;
  unsigned lane;
  Block *block;
};
struct BlockPosition {  // the visible part of a Block
  uint3 index;
  dim3 grid, dim;
};
extern __thread Thread *self __attribute__((tls_model("initial-exec")));
inline const BlockPosition &position() { return *reinterpret_cast<const BlockPosition *>(self->block); }

// Waits until all live lanes of mask are here; then the last runs work once, with the
// arguments of all of them by lane.
using WarpWork = void (*)(void **args, unsigned mask);
void warp_collective(unsigned mask, WarpWork work, const char *name, void *arg);

void block_barrier(const char *file, int line);
int block_count(bool predicate, const char *file, int line);  // a barrier that counts
void *static_shared(const void *key, size_t size, size_t align);
void *dynamic_shared();

void cp_async(void *dst, const void *src, unsigned size, unsigned read);
void cp_async_commit();
void cp_async_wait(size_t pending);

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- for the host ----

enum Error {
  kInvalidValue = 1,
  kInvalidConfiguration = 9,
  kInvalidContext = 201,
  kIllegalAddress = 700,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900,
};

struct Launch {
  const char *name;
  dim3 grid, block;
  size_t shared;
  std::function<void()> thread;  // what each thread does; holds the arguments
};
// What is queued, on any stream, runs in the order of the calls when something waits, so
// that a wait that is missing shows. SKALD_EMU_EAGER=1 runs it at once.
int launch(Launch l, void *stream);
int enqueue(void *stream, std::function<int()> work);
int synchronize();

int capture_begin(void *stream);
int capture_end(void *stream, void **graph);
int graph_launch(void *graph, void *stream);
int graph_free(void *graph);
size_t graph_nodes(void *graph);

void set_seed(uint64_t seed);     // also SKALD_EMU_SEED
void set_workers(unsigned n);     // also SKALD_EMU_WORKERS; up to 8 by default
void require_context(bool (*current)());  // without one on the calling thread, launches fail
void fail_launch(int nth, int error, bool when_it_runs);  // the nth launch from now, 1 the next; 0 none
const char *message();            // of the last failure
void reset();                     // forgets it, and what is queued

struct Counts {
  uint64_t launches, threads, switches, collectives;
};
Counts counts();

}  // namespace emu

#endif
