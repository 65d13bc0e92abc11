// See registry.h. Homes are made under the mutex: the slow path of a context's first request, with the driver calls of
// its pool.
#include "preload/registry.h"

#include <algorithm>
#include <new>

#include "device/captures.h"
#include "device/context.h"
#include "preload/process.h"
#include "preload/thread_streams.h"

namespace gpupool {
namespace {

struct Cached {
  CUcontext context;
  std::uint64_t epoch;
  Home* home;
};
__thread Cached cached = {nullptr, 0, nullptr};

}  // namespace

Home* Registry::here(const Guard& guard, std::uint64_t bytes) {
  const CUcontext current = current_context(api_);
  if (!current) return nullptr;
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  if (cached.context == current && cached.epoch == now) return cached.home;
  const StreamHome folded = home_of(api_, CU_STREAM_LEGACY);
  if (folded.result != CUDA_SUCCESS) return nullptr;
  Home* home = of_context(guard, folded.context, bytes);
  if (home) cached = {current, now, home};
  return home;
}

Home* Registry::of_context(const Guard&, CUcontext context, std::uint64_t bytes) {
  Home* home = find(context);
  if (!home) home = make(context, bytes);
  return home && home->serves() ? home : nullptr;
}

Home* Registry::find(CUcontext context) const {
  for (unsigned i = count_.load(std::memory_order_acquire); i-- > 0;) {
    if (homes_[i]->context() == context && homes_[i]->alive()) return homes_[i];
  }
  return nullptr;
}

Home* Registry::of_primary(CUdevice device) const {
  for (unsigned i = count_.load(std::memory_order_acquire); i-- > 0;) {
    Home* home = homes_[i];
    if (home->device() == device && home->owner() == Home::Owner::kPrimary && home->serves()) return home;
  }
  return nullptr;
}

Home* Registry::make(CUcontext context, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Home* home = find(context)) return home;
  const unsigned count = count_.load(std::memory_order_relaxed);
  const ContextGuard current(api_, context);
  CUdevice device = 0;
  if (count == kMostHomes || !current.ok() || api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  const bool created = std::ranges::find(created_, context, &Created::context) != created_.end();
  try {
    homes_[count] =
        new Home(api_, captures_, context, device, created ? Home::Owner::kProgram : Home::Owner::kPrimary, bytes);
  } catch (...) {
    return nullptr;  // no host memory: the driver serves
  }
  introduce(*homes_[count]);
  count_.store(count + 1, std::memory_order_release);
  return homes_[count];
}

// Every context of a card can reach all memory of that card, and those that were given peer access reach it too: all of
// them take part in the records and waits of a pool.
void Registry::introduce(Home& fresh) {
  for (const Peer& peer : peers_) {
    if (peer.owner == fresh.context()) fresh.add_peer(peer.accessor, peer.accessor_device);
  }
  for (const Created& other : created_) {
    if (other.device == fresh.device() && other.context != fresh.context()) fresh.add_peer(other.context, other.device);
  }
  each([&](Home& other) {
    if (other.device() != fresh.device() || !other.alive()) return;
    other.add_peer(fresh.context(), fresh.device());
    fresh.add_peer(other.context(), other.device());
  });
}

unsigned Registry::number_of(const Home& home) const {
  const unsigned count = count_.load(std::memory_order_acquire);
  unsigned number = 0;
  while (number < count && homes_[number] != &home) ++number;
  return number;
}

void Registry::wait_for(const Home& home) const {
  const ContextGuard current(api_, home.context());
  if (current.ok()) api_.cuCtxSynchronize();
}

void Registry::retire(Home& home) {
  home.retire();
  process().trace.retired(home);
  forget_context(home.context());
}

void Registry::forget_context(CUcontext context) {
  epoch.fetch_add(1, std::memory_order_acq_rel);
  const std::lock_guard<std::mutex> lock(mutex_);
  each([context](Home& home) { home.forget_peer(context); });
  std::erase_if(created_, [context](const Created& created) { return created.context == context; });
  std::erase_if(peers_, [context](const Peer& peer) { return peer.owner == context || peer.accessor == context; });
}

// A context takes its streams along; what they freed on any tape belongs to anyone from then on.
void Registry::end_streams(CUcontext context) const try {
  each([&](Home& home) {
    if (!home.serves()) return;
    for (const StreamRef stream : home.tape()->streams()) {
      const auto handle = reinterpret_cast<CUstream>(stream);
      if ((stream & kThreadStream) != 0 || is_default_stream(handle)) continue;
      if (home_of(api_, handle).context == context) home.tape()->stream_ending(stream);
    }
  });
} catch (const std::bad_alloc&) {
  return;  // no host memory to list them: their fragments stay theirs
}

void Registry::context_created(CUcontext context) {
  CUdevice device = 0;
  if (device_of(api_, context, device) != CUDA_SUCCESS) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    created_.push_back({context, device});
  } catch (const std::bad_alloc&) {
    return;
  }
  each([&](Home& home) {
    if (home.device() == device && home.alive()) home.add_peer(context, device);
  });
}

void Registry::context_ending(CUcontext context) {
  Home* home = find(context);
  if (home && home->owner() == Home::Owner::kPrimary) return;  // the driver refuses to destroy it
  end_streams(context);
  if (!home) return forget_context(context);
  wait_for(*home);
  retire(*home);
}

// A primary context without a pool of its own may still reach those of other cards.
void Registry::forget_primary(CUdevice device) {
  CUcontext gone = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Peer& peer : peers_) {
      const auto same = [&](const Created& created) { return created.context == peer.accessor; };
      if (peer.accessor_device == device && std::none_of(created_.begin(), created_.end(), same)) gone = peer.accessor;
    }
  }
  if (gone) forget_context(gone);
}

CUcontext Registry::primary_ending(CUdevice device) {
  CUcontext context = nullptr;
  each([&](Home& home) {
    if (home.device() != device || home.owner() != Home::Owner::kPrimary || !home.alive()) return;
    context = home.context();
    wait_for(home);
    end_streams(context);
    retire(home);
  });
  forget_primary(device);
  return context;
}

CUcontext Registry::primary_released(CUdevice device) {
  epoch.fetch_add(1, std::memory_order_acq_rel);
  CUcontext context = nullptr;
  if (primary_is_active(api_, device)) return context;
  each([&](Home& home) {
    if (home.device() != device || home.owner() != Home::Owner::kPrimary || !home.alive()) return;
    context = home.context();
    retire(home);
  });
  forget_primary(device);
  return context;
}

void Registry::peer_enabled(CUcontext owner, CUcontext accessor) {
  CUdevice device = 0;
  if (device_of(api_, accessor, device) != CUDA_SUCCESS) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    peers_.push_back({owner, accessor, device});
  } catch (const std::bad_alloc&) {
    return;
  }
  if (Home* home = find(owner)) home->add_peer(accessor, device);
}

void Registry::peer_disabled(CUcontext owner, CUcontext accessor) {
  CUdevice device = 0;
  if (device_of(api_, accessor, device) != CUDA_SUCCESS) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(peers_, [&](const Peer& peer) { return peer.owner == owner && peer.accessor == accessor; });
  if (Home* home = find(owner)) home->remove_peer(accessor, device);
}

void Registry::access_granted(CUdevice owner, CUdevice accessor) {
  if (owner == accessor) return;
  const Home* reader = of_primary(accessor);
  each([&](Home& home) {
    if (home.device() != owner || !home.serves()) return;
    if (reader)
      home.add_peer(reader->context(), accessor);
    else
      home.add_access(accessor);
  });
}

}  // namespace gpupool
