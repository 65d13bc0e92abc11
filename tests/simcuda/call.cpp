// Counting, the log of calls, and the life of the driver. Counters are atomic; everything else is under the big lock.
#include "tests/simcuda/call.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "tests/simcuda/faults.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/simcuda.h"

namespace gpupool::sim {
namespace {

constexpr size_t kSymbols = static_cast<size_t>(Symbol::kCount);

struct Row {
  const char* name;
  int version;
};

constexpr Row kRows[kSymbols] = {
#define SIM(symbol, base, version, suffix) {#symbol, version},
#include "tests/simcuda/symbols.def"
#undef SIM
};

std::atomic<uint64_t> g_calls[kSymbols];

int trace_file() {
  static const int file = settings().trace_path.empty()
                              ? -1
                              : open(settings().trace_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return file;
}

void forked() {
  // The child starts with the lock of a thread that does not exist there.
  new (&big_lock()) std::mutex;
  if (life() == Life::kReady) life() = Life::kForked;
}

__attribute__((destructor)) void shut_down() { life() = Life::kShutDown; }

}  // namespace

std::mutex& big_lock() {
  static std::mutex* const lock = [] {
    auto* made = new std::mutex;
    pthread_atfork(nullptr, nullptr, forked);
    return made;
  }();
  return *lock;
}

Life& life() {
  static Life state = Life::kBeforeInit;
  return state;
}

const char* symbol_name(Symbol symbol) { return kRows[static_cast<size_t>(symbol)].name; }

std::optional<Symbol> find_symbol(const char* name) {
  static const auto* const index = [] {
    auto* made = new std::unordered_map<std::string_view, Symbol>;
    for (size_t i = 0; i < kSymbols; ++i) made->emplace(kRows[i].name, static_cast<Symbol>(i));
    return made;
  }();
  const auto found = index->find(name);
  if (found == index->end()) return std::nullopt;
  return found->second;
}

Call::Call(Symbol symbol, Needs needs) : symbol_(symbol) {
  const size_t row = static_cast<size_t>(symbol);
  g_calls[row].fetch_add(1, std::memory_order_relaxed);
  if (life() == Life::kShutDown) {
    early_ = CUDA_ERROR_DEINITIALIZED;
    return;
  }
  big_lock().lock();
  locked_ = true;
  tracing_ = trace_file() >= 0;
  static const bool faults_read = [] {
    if (!set_faults(settings().faults)) {
      std::fprintf(stderr, "simcuda: cannot read GPUPOOL_SIM_FAULT='%s'\n", settings().faults.c_str());
      std::abort();
    }
    return true;
  }();
  (void)faults_read;
  const std::optional<CUresult> fault = next_fault(symbol);
  if (kRows[row].version > settings().driver_version) {
    early_ = CUDA_ERROR_NOT_SUPPORTED;
  } else if (needs == Needs::kInit && life() != Life::kReady) {
    early_ = CUDA_ERROR_NOT_INITIALIZED;
  } else {
    early_ = fault;
  }
}

Call::~Call() {
  if (locked_) big_lock().unlock();
}

std::string Call::hexadecimal(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

void Call::trace(CUresult result, const std::string& arguments) const {
  const std::string line =
      std::string(symbol_name(symbol_)) + "(" + arguments + ") = " + std::to_string(static_cast<int>(result)) + "\n";
  // One write per line: lines of several processes in one file stay whole.
  if (write(trace_file(), line.data(), line.size()) < 0) return;
}

}  // namespace gpupool::sim

uint64_t simcuda_calls(const char* symbol) {
  const auto found = gpupool::sim::find_symbol(symbol);
  return found ? gpupool::sim::g_calls[static_cast<size_t>(*found)].load() : 0;
}

void simcuda_reset_counts(void) {
  for (auto& count : gpupool::sim::g_calls) count = 0;
}
