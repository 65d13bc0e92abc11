// The two ways of a request: out of a home's tape, or to the driver. Every hook that hands out or takes back device
// memory ends in one of these functions. `ask` makes the program's own call to the driver, exactly as it was made.
#pragma once

#include "preload/real.h"

#include "device/context.h"
#include "preload/guard.h"
#include "preload/home.h"
#include "preload/process.h"
#include "preload/red_zones.h"

namespace gpupool {

/// Larger requests cannot be meant; the driver knows the right error.
constexpr std::uint64_t kLargestRequest = std::uint64_t{1} << 46;

/// What the driver takes beside the bytes asked for: page tables, rounding to its own pieces.
constexpr std::uint64_t kDriverSlack = std::uint64_t{64} << 20;

inline bool out_of_memory(CUresult result) { return result == CUDA_ERROR_OUT_OF_MEMORY; }

/// Gives free memory of the current device's pools back to the card, `bytes` or (0) all of it. True when any was given
/// back.
bool make_room(const Guard& guard, std::uint64_t bytes);

/// For another process, on the card of that UUID, or on all if it is empty: `want` bytes or what is free, but each pool
/// keeps `keep`. The bytes given back.
std::uint64_t give_memory_back(const Guard& guard, const std::string& uuid, std::uint64_t want, std::uint64_t keep);

/// Takes a point of the curve.
void sample(const Guard& guard);

/// Counts a call that the driver serves. If it is out of memory while a pool has some free, here or in another process
/// of this user, that is given back and the call repeated.
template <class Ask>
[[gnu::noinline]] CUresult watched(const Guard& guard, HookRow row, std::uint64_t bytes, const Ask& ask) {
  CUresult result = ask();
  const bool short_of_memory = out_of_memory(result);
  if (short_of_memory && make_room(guard, bytes)) result = ask();
  if (out_of_memory(result) && ask_neighbours(guard, bytes)) result = ask();
  if (short_of_memory && result == CUDA_SUCCESS) process().calls.rescued(row);
  if (result == CUDA_SUCCESS) process().calls.served(row, bytes);
  if (out_of_memory(result)) process().calls.refused(row);
  process().trace.watched(row, bytes, result);
  if (process().curve.due_now()) sample(guard);
  return result;
}

/// Whose a request that goes to the driver is: its stream, for the trace, and the memory pool of ours that counts it.
struct Passing {
  std::uint64_t stream = kTraceNoStream;
  std::uint16_t tag = MemoryPools::kPlain;
};

/// The same for device memory with an address, whose size is kept until it is freed.
template <class Ask>
[[gnu::noinline]] CUresult pass_through(const Guard& guard, HookRow row, std::uint64_t bytes, CUdeviceptr* out,
                                        const Ask& ask, const Passing& passing = {}) {
  const CUresult result = watched(guard, row, bytes, ask);
  if (result != CUDA_SUCCESS || !out) return result;
  const bool counted = process().direct.add(*out, {bytes, passing.tag});
  if (MemoryPool* pool = process().pools.of_tag(passing.tag)) counted ? pool->passed(bytes) : pool->lost_sight(bytes);
  process().trace.passed(row, bytes, *out, passing.stream);
  return result;
}

/// Memory of other pools of this device, given back to the card so that `home` can grow. True when any was.
bool make_room_elsewhere(const Guard& guard, const Home& home, std::uint64_t bytes);

/// The last resort, where pool.overflow allows it: memory of the host. True when the request was served; the first time
/// is said in the log.
bool overflow(const Guard& guard, Home& home, const Request& request, CUdeviceptr* out);

/// Says once in a while why a request was refused and which setting to change.
void report_out_of_memory(const Guard& guard, const Home& home, const Request& request, Verdict verdict);

/// The driver's own error, from inside the tape; remembers when the context is lost.
CUresult driver_said(Home& home, int code);

/// The tape has no memory for it.
inline bool is_refusal(Verdict verdict) { return verdict == Verdict::kCapacity || verdict == Verdict::kFragmentation; }

/// What a request of the tape is to the driver.
inline Passing passing_of(const Request& request) {
  return {request.line == kContextLine ? kTraceNoStream : request.line, request.tag};
}

inline CUresult served(Home& home, const Request& request, HookRow row, CUdeviceptr* out, CUstream stream,
                       CUdeviceptr address) {
  process().trace.served(row, home, request, address);
  *out = address;
  if (RedZones* zones = home.red_zones()) [[unlikely]]
    zones->given(row, address, request.bytes, stream);
  return CUDA_SUCCESS;
}

template <class Ask>
[[gnu::noinline]] CUresult not_served(const Guard& guard, Home& home, const Request& request, HookRow row,
                                      CUdeviceptr* out, const Ask& ask, CUstream stream, Grant grant) {
  if (is_refusal(grant.verdict) &&
      (make_room_elsewhere(guard, home, request.bytes) || ask_neighbours(guard, home, request.bytes))) {
    grant = home.tape()->allocate(request);
  }
  switch (grant.verdict) {
    case Verdict::kServed:
      return served(home, request, row, out, stream, grant.address);
    case Verdict::kDriverError:
      // A passing trouble of a fence is no reason to refuse: the driver may still serve.
      if (is_sticky(static_cast<CUresult>(grant.code))) return driver_said(home, grant.code);
      break;
    case Verdict::kCapacity:
    case Verdict::kFragmentation:
      process().trace.pool_full(row, home, request, grant.verdict);
      break;
  }
  const CUresult result = pass_through(guard, row, request.bytes, out, ask, passing_of(request));
  if (out_of_memory(result) && grant.verdict != Verdict::kDriverError) {
    if (overflow(guard, home, request, out)) {
      process().trace.served(row, home, request, *out);
      return CUDA_SUCCESS;
    }
    home.tape()->count_refusal(grant.verdict);
    report_out_of_memory(guard, home, request, grant.verdict);
  }
  return result;
}

/// `stream` is null for a plain request. Serves from the tape; where the tape has nothing, neighbours are asked, and
/// then the driver itself is tried before the answer is "out of memory".
template <class Ask>
CUresult serve(const Guard& guard, Home& home, const Request& request, HookRow row, CUdeviceptr* out, const Ask& ask,
               CUstream stream = nullptr) {
  if (home.lost() != CUDA_SUCCESS) [[unlikely]]
    return ask();
  const std::uint64_t direct_above = home.resolved().options.direct_above;
  if (home.stopped() || (direct_above != 0 && request.bytes > direct_above)) [[unlikely]]
    return pass_through(guard, row, request.bytes, out, ask, passing_of(request));
  if (process().curve.due()) [[unlikely]]
    sample(guard);
  const Grant grant = home.tape()->allocate(request);
  return grant.ok() ? served(home, request, row, out, stream, grant.address)
                    : not_served(guard, home, request, row, out, ask, stream, grant);
}

/// Gives a block of the tape back.
CUresult give_back(const Guard& guard, Home& home, HookRow row, CUdeviceptr address, Line line,
                   CUstream stream = nullptr);

/// Frees what is not on a tape.
template <class Ask>
[[gnu::noinline]] CUresult pass_free(const Guard&, HookRow row, CUdeviceptr address, const Ask& ask) {
  // An opened block of another process is closed, not freed.
  if (ImportedBlock imported; process().imports.any() && process().imports.find(address, imported))
    return CUDA_ERROR_INVALID_VALUE;
  process().trace.passing_free(row, address);
  // First: once the driver has it back, another thread's block may begin there.
  PassThrough& direct = process().direct;
  const PassThrough::Block block = direct.empty() ? PassThrough::Block{} : direct.remove(address);
  const CUresult result = ask();
  if (result != CUDA_SUCCESS) {
    if (block.bytes != 0) direct.add(address, block);
    return result == CUDA_ERROR_INVALID_VALUE && process().pools.free_left_behind(address) ? CUDA_SUCCESS : result;
  }
  if (MemoryPool* pool = process().pools.of_tag(block.tag)) pool->give_back(block.bytes);
  return result;
}

}  // namespace gpupool
