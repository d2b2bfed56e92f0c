/* One label for each function of driver.def: a jump to where its slot points. Arguments
   stay in their registers and on the stack, so no function needs to be declared. */
#if defined(__x86_64__)
#define X(name) .globl name; .type name, @function; name: jmp *skald_slot_##name(%rip);
#elif defined(__aarch64__)
#define X(name) .globl name; .type name, %function; name: adrp x16, skald_slot_##name; ldr x16, [x16, :lo12:skald_slot_##name]; br x16;
#else
#error "no trampolines for this processor"
#endif
	.text
#include "driver.def"
	.section .note.GNU-stack, "", %progbits
