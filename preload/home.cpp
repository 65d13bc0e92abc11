// See home.h.
#include "preload/home.h"

#include <time.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "config/load.h"
#include "config/resolve.h"
#include "config/text.h"
#include "device/arena_backing.h"
#include "device/captures.h"
#include "device/card.h"
#include "device/context.h"
#include "device/cuda_fence.h"
#include "device/vmm_backing.h"
#include "pool/tape_options.h"
#include "preload/guard.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/quiet_thread.h"
#include "preload/red_zones.h"
#include "preload/thread_streams.h"

namespace gpupool {
namespace {

constexpr Bytes kFirstPrefill = 256_MiB;  // before the first request returns
constexpr Bytes kPrefillStep = 256_MiB;   // at a time, under the tape's lock
constexpr timespec kLetIn{0, 300'000};    // between two, when a request waits for it

std::string card_name(const DriverApi& api, CUdevice device) {
  char name[256] = "";
  api.cuDeviceGetName(name, sizeof name - 1, device);
  return name;
}

bool takes_vmm(const DriverApi& api, CUdevice device, BackingKind wanted) {
  switch (wanted) {
    case BackingKind::arena:
      return false;
    case BackingKind::automatic:
    case BackingKind::vmm:
      return VmmBacking::supported(api, device);
  }
  return false;
}

// The settings are a device's, and what they cannot have is said once: the pools of its further contexts, and of those
// after a reset, find less of the card free than the first.
void say(const Diagnostics& diagnostics, CUdevice device) {
  bool first = true;
  process().registry.each([&](const Home& other) { first = first && other.device() != device; });
  for (const Diagnostic& diagnostic : diagnostics) {
    const bool warns = first && diagnostic.severity == Severity::warning;
    log::write(warns ? LogLevel::warn : LogLevel::info, diagnostic.message());
  }
}

}  // namespace

Home::Home(const DriverApi& api, Captures& captures, CUcontext context, CUdevice device, Owner owner,
           std::uint64_t first_bytes)
    : api_(api),
      captures_(captures),
      context_(context),
      device_(device),
      owner_(owner),
      uuid_(uuid_text(api, device)),
      card_(card_name(api, device)) {
  const CardMemory card = card_memory_of(api, context);
  log::look_for_stderr();
  if (card.total == 0) return;  // the context refuses: the driver's own answer will say why
  Resolution resolution = resolve(pool_options_for(setup().options, device, uuid_), card.total, card.free);
  say(resolution.diagnostics, device);
  resolved_ = resolution.pool;
  process().page.publish(setup().options.stats.pages);
  if (resolved_.max != 0) {
    show(process().page.new_pool());
    process().neighbours.start();
    start_pool(first_bytes);
  }
  if (!serves())
    log::identify("no pool on device " + std::to_string(device_) + ", " + to_text(resolved_.options.strategy));
}

Home::~Home() = default;

void Home::show(PoolSlot& slot) {
  shown_ = &slot;
  slot.device = static_cast<std::uint64_t>(device_);
  slot.created = owner_ == Owner::kPrimary ? 0 : 1;
  slot.pre_reserved = resolved_.size;
  slot.limit = resolved_.max;
  slot.uuid.set(uuid_);
  slot.card.set(card_);
  slot.state.set(PoolSlot::kServing);
}

// Memory pools are their device's, and its primary context has the tape for their blocks. A second one that passes for
// a primary context, or one that is not over yet, would count in the same accounts.
Account::Writers Home::account_writers() const {
  bool alone = owner_ == Owner::kPrimary;
  process().registry.each([&](const Home& other) {
    if (other.device() == device_ && other.tape() && !other.over_.load(std::memory_order_acquire))
      alone = alone && other.owner() != Owner::kPrimary;
  });
  return alone ? Account::Writers::kOne : Account::Writers::kMany;
}

void Home::start_pool(std::uint64_t first_bytes) {
  if (takes_vmm(api_, device_, resolved_.options.backing)) {
    auto vmm = std::make_unique<VmmBacking>(api_, context_, device_);
    vmm_ = vmm.get();
    backing_ = std::move(vmm);
  } else {
    backing_ = std::make_unique<ArenaBacking>(api_, context_);
  }
  if (resolved_.overflow != 0 && !backing_->has_host_memory()) {
    log::warn("device " + std::to_string(device_) + ": pool.overflow=host: " +
              (vmm_ ? "the driver maps no host memory beside the card's" : "only pool.backing=vmm can do so") +
              "; the pool does without");
    resolved_.overflow = 0;
  }
  fence_ = std::make_unique<CudaFence>(api_, captures_, context_);
  streams_ = std::make_unique<ThreadStreams>(*fence_, reinterpret_cast<StreamRef>(CU_STREAM_PER_THREAD));
  const TapeCounts counts{&shown_->stats, &shown_->sizes, &process().pools.accounts(), account_writers()};
  tape_ = std::make_unique<Tape>(tape_options_for(resolved_), *backing_, *streams_, counts);
  if (!tape_->started()) {
    log::warn("device " + std::to_string(device_) + ": no addresses for a pool (driver error " +
              std::to_string(tape_->start_error()) + "); the driver serves");
    return;
  }
  if (resolved_.options.guard) red_zones_ = std::make_unique<RedZones>(api_, captures_, *this);
  serves_.store(true, std::memory_order_release);
  const Bytes before = tape_->stats().reserved.current();
  const Bytes first = std::max(kFirstPrefill, std::min(first_bytes, resolved_.size));
  const Bytes missing = resolved_.size == 0 ? 0 : tape_->prefill(std::min(first, resolved_.size));
  if (resolved_.size != 0 && tape_->stats().reserved.current() == before) {
    log::warn("device " + std::to_string(device_) + ": the card has no memory free for the pre-reservation of " +
              readable(resolved_.size) + "; the pool grows as it can");
  }
  log::info("device " + std::to_string(device_) + " (" + card_ + "): pool of " + readable(resolved_.size) +
            ", at most " + readable(resolved_.max) + (vmm_ ? ", vmm" : ", arena"));
  log::identify("pool of " + readable(resolved_.size) + ", at most " + readable(resolved_.max) + ", on device " +
                std::to_string(device_) + " (" + card_ + "), " + to_text(resolved_.options.strategy) +
                (vmm_ ? ", vmm" : ", arena"));
  if (missing != 0) start_prefill();
}

void Home::start_prefill() {
  try {
    prefill_ = quiet_thread([this] {
      const Guard guard;
      try {
        while (!stop_.load(std::memory_order_acquire) && !stopped() && tape_->prefill(kPrefillStep) != 0) {
          if (tape_->is_wanted()) nanosleep(&kLetIn, nullptr);
        }
      } catch (const std::bad_alloc&) {
        stop();
      }
    });
  } catch (const std::system_error&) {
    log::info("no thread for the pre-reservation; the pool grows as it is used");
  }
}

void Home::stop_prefill() {
  stop_.store(true, std::memory_order_release);
  if (prefill_.joinable()) prefill_.join();
}

bool Home::shareable() const { return !movable() || vmm_->shareable(); }

DriverAnswer Home::share(const Handle& handle, int& descriptor) const { return vmm_->share(handle, descriptor); }

bool Home::is_alone() const { return fence_->contexts().size() == 1; }

// The driver's own free waits for its context, also while one captures, if the thread is relaxed; cuCtxSynchronize
// would kill the capture.
bool Home::wait_beside_captures() const {
  std::vector<CUcontext> contexts;
  {
    const auto lock = tape_->hold();
    contexts = fence_->contexts();
  }
  const RelaxedCaptureGuard relaxed(api_);
  if (!relaxed.ok()) return false;
  for (CUcontext context : contexts) {
    const ContextGuard current(api_, context);
    CUdeviceptr small = 0;
    if (!current.ok() || api_.cuMemAlloc_v2(&small, 1) != CUDA_SUCCESS) return false;
    if (api_.cuMemFree_v2(small) != CUDA_SUCCESS) return false;
  }
  return true;
}

WorkOnIt Home::before_plain_free(CUresult& error) const {
  if (captures_.any_open() && wait_beside_captures()) return WorkOnIt::kDone;
  if (api_.has_context_events())
    return tape_->options().reuse == ReusePolicy::kSync ? WorkOnIt::kAwaited : WorkOnIt::kInFlight;
  std::vector<CUcontext> contexts;
  {
    const auto lock = tape_->hold();
    contexts = fence_->contexts();
  }
  const auto no_begin = captures_.hold_off_begins();
  if (captures_.any_open()) return WorkOnIt::kInFlight;
  for (CUcontext context : contexts) {
    const ContextGuard current(api_, context);
    error = current.ok() ? api_.cuCtxSynchronize() : current.result();
    if (error != CUDA_SUCCESS) return WorkOnIt::kInFlight;
  }
  return WorkOnIt::kDone;
}

CUresult Home::add_access(CUdevice peer) {
  if (!serves() || !vmm_) return CUDA_SUCCESS;
  const auto lock = tape_->hold();
  return static_cast<CUresult>(vmm_->add_peer(peer).code);
}

CUresult Home::add_peer(CUcontext peer_context, CUdevice peer) {
  if (!serves()) return CUDA_SUCCESS;
  const auto lock = tape_->hold();
  const CUresult result = vmm_ && peer != device_ ? static_cast<CUresult>(vmm_->add_peer(peer).code) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) fence_->add_context(peer_context);
  return result;
}

void Home::remove_peer(CUcontext peer_context, CUdevice peer) {
  if (!serves()) return;
  const auto lock = tape_->hold();
  fence_->remove_context(peer_context);
  if (vmm_ && peer != device_) vmm_->remove_peer(peer);
}

void Home::forget_peer(CUcontext peer_context) {
  if (!serves()) return;
  const auto lock = tape_->hold();
  fence_->remove_context(peer_context);
}

void Home::sample_holes() {
  const std::uint64_t live = tape_->stats().live.current();
  const HoleSummary holes = tape_->holes();
  shown_->largest_hole.set(holes.largest);
  shown_->hole_bytes.set(holes.bytes);
  if (live <= sampled_live_.load(std::memory_order_relaxed)) return;
  sampled_live_.store(live, std::memory_order_relaxed);
  shown_->fragmentation_at_peak_millionths.set(std::uint64_t(holes.external_fragmentation() * 1e6));
}

void Home::retire() {
  if (!alive_.exchange(false, std::memory_order_acq_rel)) return;
  serves_.store(false, std::memory_order_release);
  stop_prefill();
  if (!tape_) return;
  if (red_zones_) red_zones_->look();
  tape_->retire();
  over_.store(true, std::memory_order_release);
  shown_->state.set(PoolSlot::kRetired);
}

}  // namespace gpupool
