// fiber.h is a stack of its own and the way to change to another.
#ifndef SKALD_EMU_FIBER_H
#define SKALD_EMU_FIBER_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emu {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

// A Stack is where a fiber stands when it does not run.
struct Stack {
  char *base = nullptr;  // above a page that faults; null for the thread's own stack
  size_t size = 0;
  void *pointer = nullptr;

  void create();
  void destroy();
  // The next change to this stack begins entry, which must not return. Stacks begin at
  // different cache lines by index, or every change would miss.
  void begin(void (*entry)(), unsigned index);
};

// change leaves one stack for another; last means that nobody comes back to from.
void change(Stack &from, Stack &to, bool last);
// arrived is the first thing that a fiber does.
void arrived(Stack *main);

}  // namespace emu

#endif
