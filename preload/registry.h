// All homes of the process: found by the current context for a request, by address for a free. Appended under one
// mutex, read without any; a home's place never changes. A thread-local cache of one entry stands before the search by
// context; `epoch`, raised whenever a context or a stream goes, empties the caches of all threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "pool/lock_order.h"
#include "preload/guard.h"
#include "preload/home.h"

namespace gpupool {

/// Raised when what a handle means may have changed. Process-wide and never reset, so that it outlives a fork.
inline std::atomic<std::uint64_t> epoch{1};

class Registry {
 public:
  static constexpr unsigned kMostHomes = 256;

  Registry(const DriverApi& api, Captures& captures) : api_(api), captures_(captures) {}

  /// The home of the calling thread's current context, made at its first request (of `bytes`). Null: no context, or no
  /// pool for it.
  Home* here(const Guard& guard, std::uint64_t bytes);
  /// The home of a context that need not be current, not folded.
  Home* of_context(const Guard& guard, CUcontext context, std::uint64_t bytes);
  /// The home of a device's primary context, if there is one.
  Home* of_primary(CUdevice device) const;
  /// The same, made now if the context exists.
  Home* of_primary(const Guard& guard, CUdevice device, std::uint64_t bytes);
  /// Whose memory an address is, or was where a retired home has kept its addresses; null: not ours. Lock-free.
  Home* at(std::uint64_t address) const {
    for (unsigned i = count_.load(std::memory_order_acquire); i-- > 0;) {
      if (homes_[i]->contains(address)) return homes_[i];
    }
    return nullptr;
  }

  /// Every home there has been, retired ones too.
  template <class Visit>
  void each(Visit visit) const {
    const unsigned count = count_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < count; ++i) visit(*homes_[i]);
  }
  unsigned number_of(const Home& home) const;

  /// Keeps new homes from being made while held; comes before any tape's lock.
  using Mutex = RankedMutex<LockRank::kRegistry>;
  std::unique_lock<Mutex> hold() { return std::unique_lock<Mutex>(mutex_); }

  /// The stream has a line on the tape of `home`. One of another context is remembered, so that its line ends with that
  /// context.
  void stream_used(Home& home, CUstream stream);
  void stream_gone(CUstream stream);

  void context_created(CUcontext context);
  void context_attached(CUcontext context);
  /// Would this cuCtxDetach be the context's end?
  bool detach_ends(CUcontext context);
  /// Before the driver destroys a context of the program: waits for it, retires its home.
  void context_ending(CUcontext context);
  /// Before the driver resets a primary context. The context, or null where it had no home.
  CUcontext primary_ending(CUdevice device);
  /// After a release: the primary context may be gone now. The context if it is, null otherwise.
  CUcontext primary_released(CUdevice device);
  /// The devices that a primary context is known of.
  std::vector<CUdevice> primary_devices();

  void peer_enabled(CUcontext owner, CUcontext accessor);
  void peer_disabled(CUcontext owner, CUcontext accessor);
  /// The pools of `owner` are opened to another device, those that come later too: access for its kernels, and its
  /// context joins the fences once it is known.
  void access_granted(CUdevice owner, CUdevice accessor);

 private:
  struct Peer {
    CUcontext owner;
    CUcontext accessor;
    CUdevice accessor_device;
  };
  struct Created {
    CUcontext context;
    CUdevice device;
    unsigned users = 1;  // cuCtxAttach and cuCtxDetach
  };
  struct Grant {
    CUdevice owner;
    CUdevice accessor;
  };
  // A stream of another context than the tape's on which its memory was used.
  struct Foreign {
    Home* home;
    CUstream stream;
    CUcontext context;
    CUdevice device;
  };

  Home* find(CUcontext context) const;
  Home* make(CUcontext context, std::uint64_t bytes);
  void introduce(Home& fresh);
  void wait_for(const Home& home) const;
  void retire(Home& home);
  void forget_context(CUcontext context);
  void forget_primary(CUdevice device, StreamEnd end);
  void end_streams(CUcontext context, StreamEnd end);
  void apply(const Grant& grant, Home& home) const;
  bool is_created(CUcontext context) const;

  const DriverApi& api_;
  Captures& captures_;
  Mutex mutex_;
  std::array<Home*, kMostHomes> homes_{};
  std::atomic<unsigned> count_{0};
  std::vector<Created> created_;  // by the program; every other context is a primary one
  std::vector<Peer> peers_;
  std::vector<Grant> grants_;
  std::vector<Foreign> foreign_;
};

}  // namespace gpupool
