/* The exports on aarch64: one stub per row of hooks.def, and dlsym.
 *
 * A stub jumps through its target and leaves registers and stack as they came, so that any signature passes. The first call finds the
 * target empty, saves every register that can hold an argument, and asks start.c. dlsym jumps too, so that the loader sees its
 * caller's return address: RTLD_NEXT and RTLD_DEFAULT depend on it. x16 and x17 are the procedure call standard's scratch for this;
 * targets are read with acquire order, because a branch alone does not order what the target reads. hint #34 is bti c. */
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
  .type symbol, %function;                       \
symbol:                                          \
  hint #34;                                      \
  adrp x17, gpupool_targets + 8 * row;           \
  add x17, x17, :lo12:gpupool_targets + 8 * row; \
  ldar x16, [x17];                               \
  cbz x16, 1f;                                   \
  br x16;                                        \
1:mov w17, row;                                  \
  b first_call;                                  \
  .size symbol, . - symbol;                      \
  .set row, row + 1;
#include "preload/hooks.def"
#undef HOOK
  .balign GPUPOOL_STUB_BYTES
  .org gpupool_stubs + row * GPUPOOL_STUB_BYTES /* an error here: a stub has outgrown its size */
  .cfi_endproc

/* w17: the row. Everything else belongs to the call. */
  .type first_call, %function
first_call:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset 29, -224
  .cfi_offset 30, -216
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov w0, w17
  bl gpupool_resolve
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldr x8, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
  .size first_call, . - first_call

  .balign 16
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint #34
  cbz x1, 1f
  ldrb w2, [x1]
  cmp w2, #'c'
  b.ne 1f
  ldrb w2, [x1, #1]
  cmp w2, #'u'
  b.eq 3f
1:adrp x16, gpupool_next_dlsym
  ldr x16, [x16, :lo12:gpupool_next_dlsym]
  cbz x16, 2f
  br x16
2:stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x29, sp
  stp x0, x1, [sp, #16]
  bl gpupool_first_dlsym
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  br x16
3:stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x29, sp
  stp x0, x1, [sp, #16]
  mov x2, x30
  bl gpupool_dlsym
  cbz x1, 4f
  ldp x29, x30, [sp], #32
  ret
4:ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  b 1b
  .cfi_endproc
  .size dlsym, . - dlsym

  .section .note.GNU-stack, "", %progbits
