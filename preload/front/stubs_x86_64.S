/* The exports on x86-64: one stub per row of hooks.def, and dlsym.
 *
 * A stub jumps through its target and leaves registers and stack as they came, so that any signature passes. The first call finds the
 * target empty, saves every register that can hold an argument, and asks start.c. dlsym jumps too, so that the loader sees its
 * caller's return address: RTLD_NEXT and RTLD_DEFAULT depend on it. Kept usable under control-flow enforcement (endbr64). */
#include "preload/front/front.h"

  .text
  .balign GPUPOOL_STUB_BYTES
  .globl gpupool_stubs
  .hidden gpupool_stubs
gpupool_stubs:
  .cfi_startproc
  .set row, 0
#define HOOK(symbol, base, version, flags, kind) \
  .balign GPUPOOL_STUB_BYTES;                    \
  .globl symbol;                                 \
  .type symbol, @function;                       \
symbol:                                          \
  endbr64;                                       \
  mov gpupool_targets + 8 * row(%rip), %r11;     \
  test %r11, %r11;                               \
  jz 1f;                                         \
  jmp *%r11;                                     \
1:mov $row, %r11d;                               \
  jmp first_call;                                \
  .size symbol, . - symbol;                      \
  .set row, row + 1;
#include "preload/hooks.def"
#undef HOOK
  .balign GPUPOOL_STUB_BYTES
  .org gpupool_stubs + row * GPUPOOL_STUB_BYTES /* an error here: a stub has outgrown its size */
  .cfi_endproc

/* r11d: the row. Everything else belongs to the call. */
  .type first_call, @function
first_call:
  .cfi_startproc
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  push %r10
  .cfi_adjust_cfa_offset 64
  sub $136, %rsp
  .cfi_adjust_cfa_offset 136
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  mov %r11d, %edi
  call gpupool_resolve
  mov %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  add $136, %rsp
  .cfi_adjust_cfa_offset -136
  pop %r10
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  .cfi_adjust_cfa_offset -64
  jmp *%r11
  .cfi_endproc
  .size first_call, . - first_call

  .balign 16
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  test %rsi, %rsi
  jz 1f
  cmpb $'c', (%rsi)
  jne 1f
  cmpb $'u', 1(%rsi)
  je 3f
1:mov gpupool_next_dlsym(%rip), %r11
  test %r11, %r11
  jz 2f
  jmp *%r11
2:push %rdi
  push %rsi
  sub $8, %rsp
  .cfi_adjust_cfa_offset 24
  call gpupool_first_dlsym
  mov %rax, %r11
  add $8, %rsp
  pop %rsi
  pop %rdi
  .cfi_adjust_cfa_offset -24
  jmp *%r11
3:push %rdi
  push %rsi
  sub $8, %rsp
  .cfi_adjust_cfa_offset 24
  mov 24(%rsp), %rdx
  call gpupool_dlsym
  add $8, %rsp
  pop %rsi
  pop %rdi
  .cfi_adjust_cfa_offset -24
  test %rdx, %rdx
  jz 1b
  ret
  .cfi_endproc
  .size dlsym, . - dlsym

/* Says that this object obeys indirect branch tracking and shadow stacks (x86 psABI, "program property"). */
  .section .note.gnu.property, "a", @note
  .balign 8
  .long 4, 16, 5
  .asciz "GNU"
  .long 0xc0000002, 4, 3, 0

  .section .note.GNU-stack, "", @progbits
