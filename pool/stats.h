// Counters of one tape, expanded from stats.def. One writer at a time (whoever holds the tape's lock), any number of
// readers: hence relaxed atomics without read-modify-write. The layout is plain memory, fit for a shared page.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpupool {

class Counter {
 public:
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::uint64_t amount) { set(get() + amount); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  std::uint64_t current() const { return current_.get(); }
  std::uint64_t peak() const { return peak_.get(); }
  void set(std::uint64_t value) {
    current_.set(value);
    if (value > peak_.get()) peak_.set(value);
  }
  /// To what is not more.
  void sink(std::uint64_t value) { current_.set(value); }
  void add(std::uint64_t amount) { set(current() + amount); }
  void subtract(std::uint64_t amount) { current_.set(current() - amount); }
  void reset_peak() { peak_.set(current()); }

 private:
  Counter current_;
  Counter peak_;
};

struct Stats {
#define GAUGE(name, unit, sentence) Gauge name;
#define COUNTER(name, unit, sentence) Counter name;
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
};

}  // namespace gpupool
