// See red_zones.h. A slot is what one red zone is copied into; its last byte, copied from the poisoned block behind
// everything else, says that the rest has arrived.
#include "preload/red_zones.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "device/captures.h"
#include "device/context.h"
#include "pool/granule.h"
#include "preload/home.h"
#include "preload/log.h"

namespace gpupool {
namespace {

constexpr unsigned char kPattern = 0xC5;
constexpr unsigned char kPoison = 0xFF;
constexpr unsigned kSlotBytes = 1024;
constexpr unsigned kDone = kSlotBytes - 1;  // a red zone has at most 511 + 512 bytes
constexpr unsigned kSlots = 4096;
constexpr std::size_t kAreaBytes = std::size_t{kSlots + 1} * kSlotBytes;
constexpr std::uint64_t kMostReports = 20;

std::uint64_t zone_bytes(std::uint64_t bytes) {
  return granules_for(bytes + kRedZoneBytes) * std::uint64_t{kGranuleBytes} - bytes;
}

}  // namespace

RedZones::RedZones(const DriverApi& api, const Captures& captures, Home& home)
    : api_(api), captures_(captures), home_(home) {
  const bool known = api.cuCtxRecordEvent && api.cuCtxWaitEvent && api.cuMemHostRegister_v2 && api.cuStreamCreate &&
                     api.cuMemcpyHtoDAsync_v2 && api.cuMemcpyDtoHAsync_v2 && api.cuMemsetD8Async;
  void* area =
      known ? mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  const RelaxedCaptureGuard relaxed(api);
  if (area == MAP_FAILED || api.cuMemHostRegister_v2(area, kAreaBytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS ||
      api.cuStreamCreate(&fills_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      api.cuStreamCreate(&checks_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      api.cuEventCreate(&filled_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
      api.cuEventCreate(&freed_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    log::warn("device " + std::to_string(home.device()) +
              ": pool.guard=on needs a driver of CUDA 12.5; nothing is guarded");
    return;
  }
  area_ = static_cast<unsigned char*>(area);
  std::memset(area_, kPattern, kSlotBytes);
  for (unsigned number = kSlots; number > 0; --number) free_slots_.push_back(number);
}

unsigned char* RedZones::slot(unsigned number) const { return area_ + std::size_t{number} * kSlotBytes; }

// Whether the call's work has a place in the order of this context: of the whole of it for a plain call, which no other
// context may disturb, or of a stream of its own.
bool RedZones::ordered(CUstream stream) const {
  if (!area_ || captures_.any_open()) return false;
  if (!stream) return home_.is_alone();
  const StreamHome where = home_of(api_, stream);
  return where.result == CUDA_SUCCESS && where.context == home_.context();
}

void RedZones::given(HookRow row, std::uint64_t address, std::uint64_t bytes, CUstream stream) {
  {
    const auto lock = home_.tape()->hold();
    const Owner owner{bytes, ++requests_, row};
    owners_.erase(address);
    if (ordered(stream) && fill(address, owner, stream)) owners_.emplace(address, owner);
  }
  look();
}

bool RedZones::fill(std::uint64_t address, const Owner& owner, CUstream stream) {
  const CUdeviceptr zone = address + owner.bytes;
  const std::uint64_t bytes = zone_bytes(owner.bytes);
  if (stream) return api_.cuMemcpyHtoDAsync_v2(zone, area_, bytes, stream) == CUDA_SUCCESS;
  // Whatever the program submits next, on any stream, comes behind it.
  const ContextGuard current(api_, home_.context());
  if (!current.ok() || api_.cuMemcpyHtoDAsync_v2(zone, area_, bytes, fills_) != CUDA_SUCCESS) return false;
  const bool waits = api_.cuEventRecord(filled_, fills_) == CUDA_SUCCESS &&
                     api_.cuCtxWaitEvent(home_.context(), filled_) == CUDA_SUCCESS;
  if (!waits) api_.cuCtxSynchronize();  // the one case, of a failing driver, in which the host waits
  return waits;
}

void RedZones::taking_back(HookRow row, std::uint64_t address, CUstream stream) {
  BlockInfo block;
  const bool shared =
      !home_.tape()->find(address, block) || block.sharing != Sharing::kNone;  // others may use it after the free
  {
    const auto lock = home_.tape()->hold();
    const auto found = owners_.find(address);
    if (found != owners_.end()) {
      const Owner owner = found->second;
      owners_.erase(found);
      if (!shared && ordered(stream))
        check(row, address, owner, stream);
      else
        ++unchecked_;
    }
  }
  look();
}

void RedZones::check(HookRow row, std::uint64_t address, const Owner& owner, CUstream stream) {
  if (free_slots_.empty()) {
    ++unchecked_;
    return;
  }
  const unsigned number = free_slots_.back();
  unsigned char* into = slot(number);
  into[kDone] = 0;
  const std::uint64_t zone = zone_bytes(owner.bytes);
  const auto submit = [&](CUstream on) {
    return api_.cuMemcpyDtoHAsync_v2(into, address + owner.bytes, zone, on) == CUDA_SUCCESS &&
           api_.cuMemsetD8Async(address, kPoison, owner.bytes + zone, on) == CUDA_SUCCESS &&
           api_.cuMemcpyDtoHAsync_v2(into + kDone, address, 1, on) == CUDA_SUCCESS;
  };
  free_slots_.pop_back();
  pending_.push_back({number, address, owner, row});  // for ever, if the driver refuses: it may have begun
  if (stream) {
    submit(stream);
    return;
  }
  const ContextGuard current(api_, home_.context());
  if (current.ok() && api_.cuCtxRecordEvent(home_.context(), freed_) == CUDA_SUCCESS &&
      api_.cuStreamWaitEvent(checks_, freed_, 0) == CUDA_SUCCESS)
    submit(checks_);
}

// What is wrong with a red zone that has arrived; empty when nothing is.
std::string RedZones::compare(const Pending& pending) {
  const Owner& owner = pending.owner;
  const unsigned char* zone = slot(pending.slot);
  const std::uint64_t bytes = zone_bytes(owner.bytes);
  std::uint64_t changed = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (zone[i] == kPattern) continue;
    if (changed++ == 0) first = i;
    last = i;
  }
  ++checked_;
  if (changed == 0 || ++overrun_ > kMostReports) return {};
  char text[320];
  std::snprintf(
      text, sizeof text,
      "device %d: overrun: %llu bytes behind the end of block 0x%llx were written, at offsets %llu to %llu of "
      "its %llu bytes; request %llu of the pool, by %s; seen at its free by %s",
      home_.device(), static_cast<unsigned long long>(changed), static_cast<unsigned long long>(pending.address),
      static_cast<unsigned long long>(owner.bytes + first), static_cast<unsigned long long>(owner.bytes + last),
      static_cast<unsigned long long>(owner.bytes), static_cast<unsigned long long>(owner.number),
      kHooks[owner.by].symbol, kHooks[pending.freed_by].symbol);
  return text;
}

void RedZones::look() {
  std::vector<std::string> found;
  {
    const auto lock = home_.tape()->hold();
    std::erase_if(pending_, [&](const Pending& pending) {
      std::atomic_ref<unsigned char> done(slot(pending.slot)[kDone]);
      if (done.load(std::memory_order_acquire) != kPoison) return false;
      if (std::string text = compare(pending); !text.empty()) found.push_back(std::move(text));
      free_slots_.push_back(pending.slot);
      return true;
    });
  }
  for (const std::string& text : found) log::error(text);
}

void RedZones::finish() {
  look();
  std::string text;
  {
    const auto lock = home_.tape()->hold();
    text = "device " + std::to_string(home_.device()) + ": guard: " + std::to_string(checked_) +
           " freed blocks checked, " + std::to_string(overrun_) + " overrun, " +
           std::to_string(unchecked_ + pending_.size()) + " not looked at";
  }
  log::write(overrun_ != 0 ? LogLevel::error : LogLevel::info, text);
}

}  // namespace gpupool
