/* The few system calls of the front, made directly: they leave errno alone and need no library. */
#ifndef GPUPOOL_PRELOAD_FRONT_SYSTEM_H
#define GPUPOOL_PRELOAD_FRONT_SYSTEM_H

#include <asm/unistd.h>

static inline long gpupool_syscall(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  register long fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long number_in __asm__("x8") = number;
  register long first __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(first) : "r"(number_in), "r"(second), "r"(third), "r"(fourth) : "memory");
  return first;
#else
#error "the front knows x86-64 and aarch64"
#endif
}

#endif
