// See serve.h.
#include "preload/serve.h"

#include <algorithm>

#include "config/text.h"
#include "device/card.h"
#include "device/context.h"
#include "preload/boundary.h"
#include "preload/log.h"
#include "preload/shortage.h"

namespace gpupool {
namespace {

Shortage shortage(const Home& home, const Request& request, Verdict verdict) {
  const Stats& stats = home.tape()->stats();
  const CardMemory card = card_memory_of(setup().api, home.context());
  std::uint64_t ours = process().direct.live();
  process().registry.each([&](Home& other) {
    if (other.serves() && other.device() == home.device()) ours += other.tape()->stats().reserved.current();
  });
  const std::uint64_t taken = card.total - card.free;
  return {.device = home.device(),
          .is_capacity = verdict == Verdict::kCapacity,
          .request = request.bytes,
          .live = stats.live.current(),
          .reserved = stats.reserved.current(),
          .limit = home.resolved().max,
          .largest_hole = home.tape()->holes().largest,
          .headroom = home.resolved().headroom,
          .others = taken - std::min(taken, ours),
          .total = card.total,
          .overflow = home.resolved().overflow};
}

}  // namespace

CUresult out_of_host_memory() {
  process().registry.each([](Home& home) { home.stop(); });
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult driver_said(Home& home, int code) {
  const auto result = static_cast<CUresult>(code);
  if (is_sticky(result)) home.lose(result);
  return result;
}

bool make_room(const Guard&, std::uint64_t bytes) {
  const DriverApi& api = setup().api;
  CUdevice device = 0;
  std::size_t free = 0;
  std::size_t total = 0;
  if (api.cuCtxGetDevice(&device) != CUDA_SUCCESS || api.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return false;
  const auto each_home = [device](auto visit) {
    process().registry.each([&](Home& home) {
      if (home.serves() && !home.stopped() && home.device() == device) visit(home);
    });
  };
  std::uint64_t holes = 0;
  each_home([&](const Home& home) {
    process().trace.changed(home);  // what a prefill has taken since the last look
    holes += home.tape()->free_bytes();
  });
  if (holes == 0 || bytes > free + holes) return false;  // emptying the pools would not help
  std::uint64_t given = 0;
  each_home([&](Home& home) {
    const std::uint64_t held = home.tape()->stats().reserved.current();
    const std::uint64_t wanted = bytes == 0 ? held : bytes + kDriverSlack - std::min(given, bytes + kDriverSlack);
    given += home.tape()->trim(held - std::min(held, wanted));
  });
  // Pieces may be larger than what is wanted, and are kept then; or what was freed is still in use.
  if (given == 0 || free + given < bytes) {
    each_home([&](Home& home) {
      home.tape()->settle(home.own_free());
      given += home.tape()->trim(0);
    });
  }
  process().registry.each([](const Home& home) { process().trace.changed(home); });
  return given != 0;
}

bool make_room_elsewhere(const Guard&, const Home& home, std::uint64_t bytes) {
  const std::uint64_t held = home.tape()->stats().reserved.current();
  if (bytes > home.resolved().max || held > home.resolved().max - bytes) return false;  // the card is not what is short
  std::uint64_t given = 0;
  const auto each_other = [&](auto visit) {
    process().registry.each([&](Home& other) {
      if (&other == &home || !other.serves() || other.stopped()) return;
      if (other.device() != home.device() || given >= bytes) return;
      if (other.tape()->free_bytes() != 0) visit(other);
    });
  };
  const auto trim = [&](Home& other) {
    const std::uint64_t theirs = other.tape()->stats().reserved.current();
    given += other.tape()->trim(theirs - std::min(theirs, bytes - given));
  };
  each_other(trim);
  each_other([&](Home& other) {
    other.tape()->settle(other.own_free());
    trim(other);
  });
  return given != 0;
}

bool overflow(const Guard&, Home& home, const Request& request, CUdeviceptr* out) {
  if (home.resolved().overflow == 0) return false;
  const Grant grant = home.tape()->allocate_overflow(request);
  if (!grant.ok()) return false;
  *out = grant.address;
  if (home.first_overflow()) {
    log::warn("device " + std::to_string(home.device()) +
              " is full: from now on memory of the host stands in (pool.overflow=host), at most " +
              readable(home.resolved().overflow) + "; work on it is many times slower");
  }
  return true;
}

std::uint64_t give_memory_back(const Guard&, const std::string& uuid, std::uint64_t want, std::uint64_t keep) {
  std::uint64_t given = 0;
  const auto trim_each = [&](auto least_held) {
    process().registry.each([&](Home& home) {
      if (!home.serves() || home.stopped() || (!uuid.empty() && home.uuid() != uuid)) return;
      const std::uint64_t held = home.tape()->stats().reserved.current();
      given += home.tape()->trim(std::max(keep, least_held(held)));
    });
  };
  trim_each([&](std::uint64_t held) { return held - std::min(held, want - std::min(want, given)); });
  // Pieces may be larger than what is wanted, and are kept then.
  if (given < want) trim_each([](std::uint64_t) { return std::uint64_t{0}; });
  return given;
}

void sample(const Guard&) {
  process().page.note_time();
  CurvePoint point;
  point.live = process().direct.live();
  process().registry.each([&](Home& home) {
    if (!home.tape()) return;
    const Stats& stats = home.tape()->stats();
    point.growth_steps += stats.growth_steps.get();
    point.migrations += stats.migrations.get();
    point.fences += stats.fences.get();
    point.oom += stats.oom_capacity.get() + stats.oom_fragmentation.get();
    if (!home.serves()) return;
    point.reserved += stats.reserved.current();
    point.live += stats.live.current();
    if (!home.stopped()) home.sample_holes();
  });
  process().curve.add(point);
}

void report_out_of_memory(const Guard&, const Home& home, const Request& request, Verdict verdict) {
  static log::RateLimit limit;
  unsigned long kept_back = 0;
  if (!log::enabled(LogLevel::warn) || !limit.pass(kept_back)) return;
  try {
    log::warn(out_of_memory_text(shortage(home, request, verdict)) +
              (kept_back ? " (" + std::to_string(kept_back) + " more not shown)" : ""));
  } catch (...) {
    return;  // no host memory for the sentence; the program gets its error
  }
}

CUresult give_back(const Guard& guard, Home& home, HookRow row, CUdeviceptr address, Line line, CUstream stream) {
  if (home.stopped()) return CUDA_SUCCESS;
  process().exports.freeing(guard, address);
  if (RedZones* zones = home.red_zones()) [[unlikely]]
    zones->taking_back(row, address, stream);
  CUresult waited = CUDA_SUCCESS;
  const WorkOnIt work = line == kContextLine ? home.before_plain_free(waited) : WorkOnIt::kInFlight;
  process().trace.freeing(row, home, address, line);
  const Freed freed = home.tape()->free(address, line, work);
  if (freed.result == FreeResult::kNotABlock) {
    // Slabs may lie where those of a context that has ended lay.
    return process().pools.free_left_behind(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (freed.record != 0) home.freed_by_this_thread(freed.record);
  if (line == kContextLine && !freed.done) home.free_did_not_wait();
  if (freed.tag != MemoryPools::kPlain) [[unlikely]]
    process().pools.of_tag(freed.tag)->give_back(freed.requested);
  // The block is free whatever became of its record; only an error that stays with the context is the program's to see.
  if (home.lost() != CUDA_SUCCESS) return home.lost();
  if (freed.code == 0 && waited == CUDA_SUCCESS) return CUDA_SUCCESS;
  return driver_said(home, is_sticky(static_cast<CUresult>(freed.code)) ? freed.code : waited);
}

}  // namespace gpupool
