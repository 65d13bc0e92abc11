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
  const StreamHome folded = current_home(api_, captures_);
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

// Only a retain tells the handle of a primary context.
Home* Registry::of_primary(const Guard& guard, CUdevice device, std::uint64_t bytes) {
  if (Home* home = of_primary(device)) return home;
  CUcontext primary = nullptr;
  if (!api_.cuDevicePrimaryCtxRelease_v2 || !primary_is_active(api_, device) ||
      api_.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
    return nullptr;
  Home* home = of_context(guard, primary, bytes);
  api_.cuDevicePrimaryCtxRelease_v2(device);
  if (primary_is_active(api_, device)) return home;
  primary_released(device);  // another thread gave it up meanwhile
  return nullptr;
}

Home* Registry::make(CUcontext context, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (Home* home = find(context)) return home;
  const unsigned count = count_.load(std::memory_order_relaxed);
  const ContextGuard current(api_, context);
  CUdevice device = 0;
  if (count == kMostHomes || !current.ok() || api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  const bool created = is_created(context);
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
  for (const Grant& grant : grants_) {
    apply(grant, fresh);
    if (grant.accessor != fresh.device() || fresh.owner() != Home::Owner::kPrimary) continue;
    each([&](Home& other) {
      if (other.device() == grant.owner) other.add_peer(fresh.context(), fresh.device());
    });
  }
}

bool Registry::is_created(CUcontext context) const {
  return std::ranges::find(created_, context, &Created::context) != created_.end();
}

unsigned Registry::number_of(const Home& home) const {
  const unsigned count = count_.load(std::memory_order_acquire);
  unsigned number = 0;
  while (number < count && homes_[number] != &home) ++number;
  return number;
}

void Registry::wait_for(const Home& home) const {
  const ContextGuard current(api_, home.context());
  const RelaxedCaptureGuard relaxed(api_);  // captures of other contexts go on
  if (current.ok()) api_.cuCtxSynchronize();
}

// What is stream-ordered outlives the context natively. Its memory goes here, but its free is no error.
void Registry::retire(Home& home) {
  if (home.serves()) {
    home.tape()->visit_blocks([](const BlockInfo& block) {
      if (block.stream_ordered) process().pools.leave_behind(block.address, block.tag, block.requested);
    });
  }
  home.retire();
  process().trace.retired(home);
  forget_context(home.context());
}

void Registry::forget_context(CUcontext context) {
  epoch.fetch_add(1, std::memory_order_acq_rel);
  const std::lock_guard lock(mutex_);
  each([context](Home& home) { home.forget_peer(context); });
  std::erase_if(created_, [context](const Created& created) { return created.context == context; });
  std::erase_if(peers_, [context](const Peer& peer) { return peer.owner == context || peer.accessor == context; });
}

void Registry::stream_used(Home& home, CUstream stream) {
  const StreamHome where = home_of(api_, stream);
  CUdevice device = 0;
  if (where.result != CUDA_SUCCESS || where.context == home.context()) return;
  if (device_of(api_, where.context, device) != CUDA_SUCCESS) return;
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Foreign& known) { return known.home == &home && known.stream == stream; };
  if (std::ranges::any_of(foreign_, same)) return;
  try {
    foreign_.push_back({&home, stream, where.context, device});
  } catch (const std::bad_alloc&) {
    return;  // its fragments stay its own
  }
}

void Registry::stream_gone(CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(foreign_, [stream](const Foreign& known) { return known.stream == stream; });
}

// A context takes its streams along; what they freed on other contexts' tapes belongs to anyone from then on.
void Registry::end_streams(CUcontext context, StreamEnd end) {
  const std::lock_guard lock(mutex_);
  for (const Foreign& known : foreign_) {
    if (known.context == context && known.home->serves())
      known.home->tape()->stream_ending(reinterpret_cast<StreamRef>(known.stream), end);
  }
  std::erase_if(foreign_, [context](const Foreign& known) { return known.context == context; });
}

void Registry::context_created(CUcontext context) {
  CUdevice device = 0;
  if (device_of(api_, context, device) != CUDA_SUCCESS) return;
  const std::lock_guard lock(mutex_);
  try {
    created_.push_back({.context = context, .device = device});
  } catch (const std::bad_alloc&) {
    return;
  }
  each([&](Home& home) {
    if (home.device() == device && home.alive()) home.add_peer(context, device);
  });
}

void Registry::context_attached(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (Created& created : created_) {
    if (created.context == context) ++created.users;
  }
}

bool Registry::detach_ends(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto created = std::ranges::find(created_, context, &Created::context);
  return created != created_.end() && --created->users == 0;
}

void Registry::context_ending(CUcontext context) {
  Home* home = find(context);
  if (home && home->owner() == Home::Owner::kPrimary) return;  // the driver refuses to destroy it
  end_streams(context, StreamEnd::kAhead);
  if (!home) return forget_context(context);
  wait_for(*home);
  retire(*home);
}

// A primary context without a pool of its own may still reach those of other cards, and its streams have used them.
void Registry::forget_primary(CUdevice device, StreamEnd end) {
  CUcontext gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_) {
      if (peer.accessor_device == device && !is_created(peer.accessor)) gone = peer.accessor;
    }
    for (const Foreign& known : foreign_) {
      if (known.device == device && !is_created(known.context)) gone = known.context;
    }
  }
  if (!gone) return;
  end_streams(gone, end);
  forget_context(gone);
}

CUcontext Registry::primary_ending(CUdevice device) {
  CUcontext context = nullptr;
  each([&](Home& home) {
    if (home.device() != device || home.owner() != Home::Owner::kPrimary || !home.alive()) return;
    context = home.context();
    wait_for(home);
    end_streams(context, StreamEnd::kAhead);
    retire(home);
  });
  forget_primary(device, StreamEnd::kAhead);
  return context;
}

CUcontext Registry::primary_released(CUdevice device) {
  epoch.fetch_add(1, std::memory_order_acq_rel);
  CUcontext context = nullptr;
  if (primary_is_active(api_, device)) return context;
  each([&](Home& home) {
    if (home.device() != device || home.owner() != Home::Owner::kPrimary || !home.alive()) return;
    context = home.context();
    end_streams(context, StreamEnd::kGone);
    retire(home);
  });
  forget_primary(device, StreamEnd::kGone);
  return context;
}

std::vector<CUdevice> Registry::primary_devices() {
  std::vector<CUdevice> devices;
  each([&](Home& home) {
    if (home.owner() == Home::Owner::kPrimary && home.alive()) devices.push_back(home.device());
  });
  const std::lock_guard lock(mutex_);
  for (const Peer& peer : peers_) devices.push_back(peer.accessor_device);
  for (const Foreign& known : foreign_) devices.push_back(known.device);
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

void Registry::peer_enabled(CUcontext owner, CUcontext accessor) {
  CUdevice device = 0;
  if (device_of(api_, accessor, device) != CUDA_SUCCESS) return;
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  std::erase_if(peers_, [&](const Peer& peer) { return peer.owner == owner && peer.accessor == accessor; });
  Home* home = find(owner);
  const auto granted = [&](const Grant& grant) { return grant.owner == home->device() && grant.accessor == device; };
  if (home && std::ranges::none_of(grants_, granted)) home->remove_peer(accessor, device);
}

void Registry::access_granted(CUdevice owner, CUdevice accessor) {
  if (owner == accessor) return;
  const std::lock_guard lock(mutex_);
  const Grant grant{owner, accessor};
  try {
    grants_.push_back(grant);
  } catch (const std::bad_alloc&) {
    return;
  }
  each([&](Home& home) { apply(grant, home); });
}

void Registry::apply(const Grant& grant, Home& home) const {
  if (home.device() != grant.owner || !home.serves()) return;
  if (const Home* reader = of_primary(grant.accessor))
    home.add_peer(reader->context(), grant.accessor);
  else
    home.add_access(grant.accessor);
}

}  // namespace gpupool
