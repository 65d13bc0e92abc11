// Records on their way from the program's threads to the one that writes them: a bounded queue for many writers and one
// reader, without locks, system calls or waiting (Dmitry Vyukov's bounded queue: each place has a turn). Where there is
// no room a record is dropped and counted. Places are taken in an order that respects who saw whose work: of two
// records of one address, the earlier owner's comes first. Owned by the recorder.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "pool/trace_format.h"

namespace gpupool {

class TraceRing {
 public:
  static constexpr std::uint64_t kPlaces = std::uint64_t{1} << 17;  // 6 MiB: 10 ms of the busiest program there can be

  TraceRing() : places_(std::make_unique<Place[]>(kPlaces)) {
    for (std::uint64_t i = 0; i < kPlaces; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// Any thread.
  void push(const TraceRecord& record) {
    std::uint64_t at = next_.load(std::memory_order_relaxed);
    for (;;) {
      Place& place = places_[at % kPlaces];
      const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!next_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        place.record = record;
        place.turn.store(at + 1, std::memory_order_release);
        return;
      }
      if (turn < at) {  // still holds what was not read a round ago
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      at = next_.load(std::memory_order_relaxed);
    }
  }

  /// The one reader: the next record, false when there is none yet.
  bool pop(TraceRecord& record) {
    Place& place = places_[read_ % kPlaces];
    if (place.turn.load(std::memory_order_acquire) != read_ + 1) return false;
    record = place.record;
    place.turn.store(read_ + kPlaces, std::memory_order_release);
    ++read_;
    return true;
  }

  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<std::uint64_t> turn;
    TraceRecord record;
  };

  std::unique_ptr<Place[]> places_;
  alignas(64) std::atomic<std::uint64_t> next_{0};
  alignas(64) std::atomic<std::uint64_t> dropped_{0};
  alignas(64) std::uint64_t read_ = 0;
};

}  // namespace gpupool
