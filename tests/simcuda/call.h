// How every exported function enters the simulator: count the call, let a planned fault answer it, take the big lock,
// run the body, log it. One mutex guards all state of the simulator; bodies run with it held and wait through the
// scheduler, which gives it up only while the program's own code (a host function) runs or nothing can run.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "tests/simcuda/driver.h"

namespace gpupool::sim {

enum class Symbol : uint16_t {
#define SIM(symbol, base, version, suffix) symbol,
#include "tests/simcuda/symbols.def"
#undef SIM
  kCount
};

const char* symbol_name(Symbol symbol);
std::optional<Symbol> find_symbol(const char* name);

// Lives as long as the process, and is free again in a child of fork.
std::mutex& big_lock();

// What one call needs before and after its body; see enter().
class Call {
 public:
  enum class Needs { kNothing, kInit };
  Call(Symbol symbol, Needs needs);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The result that stands before the body runs: a fault, a missing cuInit, a driver too old, a driver already gone.
  std::optional<CUresult> early_result() const { return early_; }

  template <class... A>
  CUresult finish(CUresult result, const A&... args) {
    if (tracing_) {
      std::string text;
      ((text += (text.empty() ? "" : ", ") + describe(args, result)), ...);
      trace(result, text);
    }
    return result;
  }

 private:
  void trace(CUresult result, const std::string& arguments) const;

  template <class T>
  static std::string describe(const T& value, CUresult result) {
    if constexpr (std::is_same_v<T, CUdeviceptr*> || std::is_same_v<T, CUstream*> || std::is_same_v<T, CUevent*>) {
      const bool filled = value && result == CUDA_SUCCESS;
      return "*" + (filled ? describe(*value, result) : std::string("?"));
    } else if constexpr (std::is_same_v<T, const char*>) {
      return value ? "\"" + std::string(value) + "\"" : "0";
    } else if constexpr (std::is_same_v<T, CUdeviceptr>) {
      return hexadecimal(value);
    } else if constexpr (std::is_pointer_v<T>) {
      return hexadecimal(reinterpret_cast<uintptr_t>(value));
    } else if constexpr (std::is_enum_v<T>) {
      return std::to_string(static_cast<long long>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      return std::to_string(value);
    } else {
      return "{...}";
    }
  }
  static std::string hexadecimal(uint64_t value);

  Symbol symbol_;
  bool locked_ = false;
  bool tracing_ = false;
  std::optional<CUresult> early_;
};

// The one shape of an exported function: enter(Symbol::cuX, body, its arguments).
template <class... P, class... A>
CUresult enter(Symbol symbol, CUresult (*body)(P...), A... args) {
  Call call(symbol, Call::Needs::kInit);
  return call.finish(call.early_result() ? *call.early_result() : body(args...), args...);
}

// The same, for what may be called before cuInit.
template <class... P, class... A>
CUresult enter_before_init(Symbol symbol, CUresult (*body)(P...), A... args) {
  Call call(symbol, Call::Needs::kNothing);
  return call.finish(call.early_result() ? *call.early_result() : body(args...), args...);
}

// Stream 0 as the two kinds of entry point mean it.
inline CUstream legacy(CUstream stream) { return stream ? stream : CU_STREAM_LEGACY; }
inline CUstream per_thread(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

// Set by cuInit, cleared in a child of fork (the driver does not survive it).
enum class Life { kBeforeInit, kReady, kShutDown, kForked };
Life& life();

}  // namespace gpupool::sim
