// See resolve.h for the rules.
#include "config/resolve.h"

#include <algorithm>

#include "config/text.h"

namespace gpupool {
namespace {

// `bytes` is at most the card's total, or kLargest of the grammar: never near overflow.
Bytes whole_handles(Bytes bytes) {
  if (bytes == 0) return 0;
  return std::max(bytes / kHandleGranularity * kHandleGranularity, kHandleGranularity);
}

class Resolver {
 public:
  Resolver(const PoolOptions& options, Bytes total, Bytes free) : options_{options}, total_{total}, free_{free} {
    out_.pool.options = options;
    out_.pool.total = total;
  }

  Resolution run() {
    if (!strategy_has_pool()) return std::move(out_);
    if (total_ < kHandleGranularity) {
      report(Severity::warning, "pool", "the device reports " + readable(total_) + " of memory", "no pool");
      return std::move(out_);
    }
    headroom();
    max();
    size();
    growth_and_handle();
    if (options_.overflow == OverflowKind::host) out_.pool.overflow = whole_handles(options_.overflow_max.of(total_));
    return std::move(out_);
  }

 private:
  bool strategy_has_pool() {
    switch (options_.strategy) {
      case Strategy::best_fit:
      case Strategy::auto_growth:
        return true;
      case Strategy::passthrough:
      case Strategy::off:
        break;
    }
    report(Severity::note, "pool.strategy", "is " + to_text(options_.strategy), "no pool");
    return false;
  }

  void headroom() {
    Bytes& headroom = out_.pool.headroom;
    headroom = options_.headroom.of(total_);
    if (headroom <= total_ - kHandleGranularity) return;
    headroom = defaults_.headroom.of(total_);
    if (headroom > total_ - kHandleGranularity) headroom = total_ / 8;
    report(severity(options_.headroom == defaults_.headroom), "pool.headroom",
           to_text(options_.headroom) + " leaves nothing of the card's " + readable(total_), readable(headroom));
  }

  void max() {
    const Bytes wanted = options_.max.of(total_);
    const Bytes limit = total_ - out_.pool.headroom;
    out_.pool.max = std::max(whole_handles(std::min(wanted, limit)), kHandleGranularity);
    if (wanted > total_) {
      report(Severity::warning, "pool.max", to_text(options_.max) + " is more than the card's " + readable(total_),
             readable(out_.pool.max) + ", the total minus pool.headroom");
    } else if (wanted > limit && options_.max != defaults_.max) {
      report(Severity::warning, "pool.max",
             to_text(options_.max) + " does not leave pool.headroom (" + readable(out_.pool.headroom) + ") free",
             readable(out_.pool.max));
    } else if (wanted < kHandleGranularity) {
      report(Severity::warning, "pool.max", to_text(options_.max) + " is less than one handle",
             readable(out_.pool.max));
    }
  }

  // Several rules may cut the size; the first one that does is the one that is named.
  void size() {
    if (options_.strategy == Strategy::auto_growth) return;
    const Bytes wanted = options_.size.of(total_);
    const Bytes spare = free_ > out_.pool.headroom ? free_ - out_.pool.headroom : 0;
    const Bytes limit = std::min(out_.pool.max, spare / kHandleGranularity * kHandleGranularity);
    out_.pool.size = std::min(whole_handles(wanted), limit);
    if (out_.pool.size == whole_handles(wanted)) return;

    const std::string kept = "pool.headroom (" + readable(out_.pool.headroom) + ")";
    std::string problem = to_text(options_.size);
    if (wanted > total_) {
      problem += " is more than the card's " + readable(total_);
    } else if (wanted > options_.max.of(total_)) {
      problem += " is more than pool.max (" + to_text(options_.max) + ")";
    } else if (whole_handles(wanted) > out_.pool.max) {
      problem += " does not leave " + kept + " free";
    } else {
      problem += " does not fit: only " + readable(free_) + " of the card are free, and " + kept + " is kept";
    }
    const bool nothing = out_.pool.size == 0;
    report(nothing ? Severity::warning : severity(options_.size == defaults_.size), "pool.size", problem,
           nothing ? "nothing up front; the pool grows when memory becomes free" : readable(out_.pool.size));
  }

  void growth_and_handle() {
    GrowthStep& growth = out_.pool.options.growth;
    if (growth.step > out_.pool.max) {
      growth.step = out_.pool.max;
      report(severity(options_.growth == defaults_.growth), "pool.growth",
             to_text(options_.growth) + " is more than the pool may hold", readable(growth.step));
    }
    out_.pool.handle = options_.handle.bytes;
    if (out_.pool.handle > out_.pool.max) {
      out_.pool.handle = 0;
      report(Severity::warning, "pool.handle", to_text(options_.handle) + " is more than the pool may hold", "auto");
    }
  }

  static Severity severity(bool by_default) { return by_default ? Severity::note : Severity::warning; }

  void report(Severity severity, std::string key, std::string problem, std::string used) {
    out_.diagnostics.push_back({severity, {}, std::move(key), std::move(problem), {}, std::move(used)});
  }

  const PoolOptions defaults_;
  const PoolOptions& options_;
  Bytes total_;
  Bytes free_;
  Resolution out_;
};

}  // namespace

Resolution resolve(const PoolOptions& options, Bytes device_total, Bytes device_free) {
  return Resolver{options, device_total, device_free}.run();
}

}  // namespace gpupool
