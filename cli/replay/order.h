// The order in which the events of a trace are played: as recorded, or slightly other, as another run of the program
// may ask. Of the pairs of events that follow each other one in fifty changes places: two requests, two frees, or a
// request and the free of another block behind it. A free never moves behind a request, because whoever frees first to
// have room does so in every run; so an order never has more live memory than the recorded one. Seed and index alone
// decide, so that an order can be had again and needs no copy of the trace. A value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/trace/trace.h"

namespace gpupool::cli {

class Order {
 public:
  /// As recorded.
  constexpr Order() = default;
  /// 0 is as recorded, too.
  constexpr explicit Order(std::uint64_t seed) : seed_(seed) {}

  /// `visit` takes an event and returns whether to go on.
  template <class Visit>
  void each(const std::vector<Event>& events, Visit&& visit) const {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (seed_ != 0 && i + 1 < events.size() && can_change(events[i], events[i + 1]) && changes(i)) {
        if (!visit(events[i + 1])) return;
        if (!visit(events[i])) return;
        ++i;
      } else if (!visit(events[i])) {
        return;
      }
    }
  }

 private:
  static constexpr std::uint64_t kOneIn = 50;

  static bool can_change(const Event& one, const Event& next) {
    const bool makes_room = one.bytes == 0 && next.bytes != 0;
    return one.slot != next.slot && !makes_room;
  }

  // The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
  bool changes(std::uint64_t index) const {
    std::uint64_t mixed = seed_ * 0x9e3779b97f4a7c15 + index;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return (mixed ^ (mixed >> 31)) % kOneIn == 0;
  }

  std::uint64_t seed_ = 0;
};

}  // namespace gpupool::cli
