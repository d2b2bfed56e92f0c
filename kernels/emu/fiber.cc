#include "fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// skald_emu_change(&from, to) keeps the registers that a call must keep on the old stack
// and takes them from the new one.
extern "C" void skald_emu_change(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
.text
.type skald_emu_change,@function
skald_emu_change:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size skald_emu_change,.-skald_emu_change
)");
constexpr int kWords = 8, kReturn = 6;  // six registers, the address, and one to align
#elif defined(__aarch64__)
asm(R"(
.text
.type skald_emu_change,%function
skald_emu_change:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
.size skald_emu_change,.-skald_emu_change
)");
constexpr int kWords = 20, kReturn = 1;
#else
#error "skald_emu_change is not written for this processor"
#endif

namespace emu {

constexpr size_t kGuard = 64 << 10;  // a page, whatever its size

void Stack::create() {
  void *p = mmap(nullptr, kStackBytes + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p, kGuard, PROT_NONE)) {
    std::perror("emulation: a stack");
    std::abort();
  }
  base = static_cast<char *>(p) + kGuard;
  size = kStackBytes;
}

void Stack::destroy() { munmap(base - kGuard, kStackBytes + kGuard); }

void Stack::begin(void (*entry)(), unsigned index) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(base, size);
#endif
  void **top = reinterpret_cast<void **>(base + size - index % 32 * 128) - kWords;
  std::memset(top, 0, kWords * sizeof *top);
  top[kReturn] = reinterpret_cast<void *>(entry);
  pointer = top;
}

void change(Stack &from, Stack &to, bool last) {
#if defined(__SANITIZE_ADDRESS__)
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake, to.base, to.size);
  skald_emu_change(&from.pointer, to.pointer);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  (void)last;
  skald_emu_change(&from.pointer, to.pointer);
#endif
}

void arrived(Stack *main) {
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (!main->base) {  // the first fiber comes from the thread's own stack
    main->base = static_cast<char *>(const_cast<void *>(bottom));
    main->size = size;
  }
#else
  (void)main;
#endif
}

}  // namespace emu
