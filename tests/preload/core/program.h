// A small CUDA program made of cases: `program NAME` runs one of them and ends with 0 when all its checks held. The
// tests run it with and without the preload, on the simulated driver. A failed check says where and goes on, so that
// one run shows all that is wrong.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace program {

using Body = void (*)();

inline std::map<std::string, Body>& cases() {
  static std::map<std::string, Body> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, Body body) { cases()[name] = body; }
};

template <class Left, class Right>
void expect_equal(const Left& left, const Right& right, const char* text, const char* file, int line) {
  if (left == right) return;
  ++failures();
  std::printf("%s:%d: %s: got %llu, expected %llu\n", file, line, text, static_cast<unsigned long long>(left),
              static_cast<unsigned long long>(right));
}

inline void expect(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  ++failures();
  std::printf("%s:%d: %s does not hold\n", file, line, text);
}

/// The first device's primary context, current.
CUcontext begin(CUdevice device = 0);

/// Bytes of a device's pool as cuMemGetInfo and the attributes show them.
std::size_t free_memory();

CUstream new_stream();
CUcontext new_context();

/// Device memory, plain or in the order of a stream. 0 after a failed check.
CUdeviceptr take(std::size_t bytes);
CUdeviceptr take_ordered(std::size_t bytes, CUstream stream);

/// An attribute of an address, by type.
template <class Value>
Value attribute(CUpointer_attribute which, CUdeviceptr address) {
  Value value{};
  const CUresult result = cuPointerGetAttribute(&value, which, address);
  if (result != CUDA_SUCCESS) std::printf("attribute %d: error %d\n", which, result), ++failures();
  return value;
}

}  // namespace program

#define CASE(name)                                                      \
  static void case_##name();                                            \
  static const program::Register registered_##name(#name, case_##name); \
  static void case_##name()
#define EQUAL(left, right) program::expect_equal(left, right, #left, __FILE__, __LINE__)
#define HOLDS(condition) program::expect(condition, #condition, __FILE__, __LINE__)
#define OK(call) program::expect_equal(call, CUDA_SUCCESS, #call, __FILE__, __LINE__)
