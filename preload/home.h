// The pool of one context: backing, fence and tape together, made at the context's first request and retired before the
// context goes. Owned by the registry and never deleted, because another thread may be inside; a retired home keeps its
// statistics for the report. Green contexts share the home of their device's primary context. The pre-reservation is
// completed by a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "preload/real.h"

#include "config/options.h"
#include "device/driver_api.h"
#include "live/page.h"
#include "pool/tape.h"
#include "preload/trace_clock.h"

namespace gpupool {

class Captures;
class CudaFence;
class RedZones;
class ThreadStreams;
class VmmBacking;

class Home {
 public:
  /// What kind of context it is: a primary one goes by reset and release, another by destroy.
  enum class Owner : std::uint8_t { kPrimary, kProgram };

  /// With `context` current. Resolves the options against the card, reserves addresses, and maps what the first request
  /// needs. A home that could not get a pool says so once in the log and serves nothing; it is remembered, so that it
  /// is not tried again.
  Home(const DriverApi& api, Captures& captures, CUcontext context, CUdevice device, Owner owner,
       std::uint64_t first_bytes);

  ~Home();

  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }
  Owner owner() const { return owner_; }
  const std::string& uuid() const { return uuid_; }
  const std::string& card() const { return card_; }
  const ResolvedPool& resolved() const { return resolved_; }

  /// False once retired, and where no pool could be had.
  bool serves() const { return serves_.load(std::memory_order_acquire); }
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  /// Null where no pool could be had; present for ever otherwise.
  Tape* tape() const { return tape_.get(); }
  /// Also of a retired one, where the addresses were kept.
  bool contains(std::uint64_t address) const { return tape_ && tape_->contains(address); }
  bool movable() const { return backing_->placement() == Placement::kChosen; }

  /// Whether other processes can map the blocks, and a descriptor of a handle below one (VmmBacking::share).
  bool shareable() const;
  DriverAnswer share(const Handle& handle, int& descriptor) const;

  /// What a plain free does about the work before it. Where the program wants it so, it waits on the host. Where there
  /// are no context events, on an old driver and while a capture is open, it has to: here, before the free, in every
  /// context that can reach the memory, with no tape locked, because what is waited for may need an allocation of
  /// another thread first. `error`: the driver's, else success.
  WorkOnIt before_plain_free(CUresult& error) const;

  /// The sticky error to which the context is lost, or success: every call goes to the driver from now on, which says
  /// so.
  CUresult lost() const { return lost_.load(std::memory_order_relaxed); }
  void lose(CUresult error) { lost_.store(error, std::memory_order_relaxed); }
  /// Whether a driver call in this context that was made within the last microsecond said that it is not lost. `now`
  /// is ticks(), read before the call.
  bool was_sound(std::uint64_t now) const {
    return TraceClock::are_near(now, sound_.load(std::memory_order_relaxed), some_ticks_);  // another may ask meanwhile
  }
  void is_sound(std::uint64_t now) { sound_.store(now, std::memory_order_relaxed); }
  std::uint64_t ticks() const { return clock_.ticks(); }

  /// The host had no memory in the middle of a change: the tape is left as it is. The driver serves from now on, and
  /// frees of its blocks are answered and forgotten.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  /// Null without pool.guard.
  RedZones* red_zones() const { return red_zones_.get(); }
  /// Whether no other context can reach the memory. Under the tape's lock.
  bool is_alone() const;

  /// Lets a context of another device (or another context of this one) use the memory: access, records and waits.
  CUresult add_peer(CUcontext peer_context, CUdevice peer);
  void remove_peer(CUcontext peer_context, CUdevice peer);
  /// A context is gone: it takes part in no record any more. Unknown ones are ignored.
  void forget_peer(CUcontext peer_context);
  /// Access alone, as cuMemPoolSetAccess asks for it.
  CUresult add_access(CUdevice peer);

  /// The record of the calling thread's last plain free on this tape, 0 for none (Request::own_free).
  std::uint64_t own_free() const { return last_free_.home == this ? last_free_.record : 0; }
  void freed_by_this_thread(std::uint64_t record) { last_free_ = {this, record}; }
  /// Plain frees that did not wait for the card, as the driver's own would have.
  void free_did_not_wait() { shown_->unwaited_frees.fetch_add(1, std::memory_order_relaxed); }

  /// True once, the first time that it is asked.
  bool first_overflow() { return !overflowed_.exchange(true, std::memory_order_relaxed); }

  /// Its part of the live page; there is one if there is a tape.
  const PoolSlot& shown() const { return *shown_; }
  /// Looks at the holes; external fragmentation when more is live than ever before is what the report calls "at the
  /// peak".
  void sample_holes();

  /// The context is about to go, or has gone: no more work in it. Stops the prefill and gives everything back.
  void retire();
  /// The process ends: stops the prefill and nothing else.
  void stop_prefill();

 private:
  // A thread that works on several cards in turn keeps the last one's only, and then waits for less.
  struct LastFree {
    const Home* home;
    std::uint64_t record;
  };
  static inline __thread LastFree last_free_ = {nullptr, 0};

  bool wait_beside_captures() const;
  void start_pool(std::uint64_t first_bytes);
  Account::Writers account_writers() const;
  void show(PoolSlot& slot);
  void start_prefill();

  const DriverApi& api_;
  Captures& captures_;
  const CUcontext context_;
  const CUdevice device_;
  const Owner owner_;
  std::string uuid_;
  std::string card_;
  ResolvedPool resolved_;
  std::unique_ptr<Backing> backing_;
  VmmBacking* vmm_ = nullptr;  // backing_, when it is that
  std::unique_ptr<CudaFence> fence_;
  std::unique_ptr<ThreadStreams> streams_;
  std::unique_ptr<Tape> tape_;
  std::unique_ptr<RedZones> red_zones_;
  std::atomic<bool> alive_{true};
  std::atomic<bool> serves_{false};
  std::atomic<bool> over_{false};  // retired to the end
  std::atomic<CUresult> lost_{CUDA_SUCCESS};
  const TraceClock clock_;
  const std::uint64_t some_ticks_ = clock_.some_ticks();
  std::atomic<std::uint64_t> sound_{0};  // when
  std::atomic<bool> stopped_{false};
  std::atomic<bool> overflowed_{false};
  std::atomic<bool> stop_{false};
  std::thread prefill_;
  PoolSlot* shown_ = nullptr;
  std::atomic<std::uint64_t> sampled_live_{0};
};

}  // namespace gpupool
