// See read.h: PyTorch's snapshot (https://pytorch.org/docs/stable/torch_cuda_memory.html), its history in
// `device_traces`. A block is free when its free is completed. Blocks from before the record began are put in front:
// those that are freed in it, with the size that their free tells, and those that are still there at its end, from
// `segments`.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "cli/console.h"
#include "cli/trace/pickle.h"
#include "cli/trace/read.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

using Value = Pickle::Value;

class Snapshot {
 public:
  Snapshot(const std::string& path, const Pickle& pickle) : path_(path), pickle_(pickle) {}

  Trace read() {
    const Value* devices = member(pickle_.root(), "device_traces", Pickle::Type::list);
    if (devices == nullptr) refuse("is no PyTorch snapshot: it has no device_traces");
    const std::size_t device = busiest(pickle_.items(*devices));
    const Value entries = pickle_.items(*devices)[device];
    if (pickle_.items(entries).empty()) {
      refuse("has no history; record it with torch.cuda.memory._record_memory_history() before the work");
    }
    blocks_from_before(entries, device);
    for (const Value entry : pickle_.items(entries)) {
      const Action action = action_of(entry);
      const auto address = static_cast<std::uint64_t>(number(entry, "addr"));
      if (action == Action::free) builder_.free(address, std::nullopt, seen(entry, address));
      if (action != Action::allocate) continue;
      if (builder_.free(address, std::nullopt, seen(entry, address)))
        ++reused_;  // its free was not completed when the memory was handed out again
      builder_.allocate(address, size(entry, "size"), static_cast<std::uint64_t>(number(entry, "stream")),
                        seen(entry, address));
    }
    if (reused_ > 0) builder_.note(std::to_string(reused_) + " frees that were not recorded are added");
    builder_.trace().timed = timed_;
    builder_.trace().placed = true;
    builder_.trace().origin.device = static_cast<std::uint32_t>(device);
    return builder_.finish(path_, "pytorch");
  }

 private:
  enum class Action { allocate, free, other };

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Problem(Exit::input, escaped(path_, path_.size()) + ": " + problem);
  }

  const Value* member(Value dict, std::string_view key, Pickle::Type type) const {
    const Value* found = pickle_.find(dict, key);
    return found != nullptr && pickle_.type(*found) == type ? found : nullptr;
  }

  std::int64_t number(Value dict, std::string_view key) const {
    const Value* found = member(dict, key, Pickle::Type::integer);
    if (found == nullptr) refuse("an entry has no number " + in_quotes(key));
    return pickle_.integer(*found);
  }

  std::uint64_t size(Value dict, std::string_view key) const {
    const std::int64_t bytes = number(dict, key);
    if (bytes < 0) refuse("a block of " + std::to_string(bytes) + " bytes is less than none");
    const auto size = static_cast<std::uint64_t>(bytes);
    if (size > kLargestRequest) refuse("a block of " + std::to_string(bytes) + " bytes is more than any card has");
    return size;
  }

  // Snapshots of old versions have no times.
  Seen seen(Value entry, std::uint64_t address) {
    const Value* time = member(entry, "time_us", Pickle::Type::integer);
    timed_ = timed_ && time != nullptr;
    if (time == nullptr) return {.address = address};
    const std::int64_t now = pickle_.integer(*time);
    if (!began_us_) began_us_ = now;
    return {.time_ns = now > *began_us_ ? 1000 * static_cast<std::uint64_t>(now - *began_us_) : 0, .address = address};
  }

  Action action_of(Value entry) const {
    const Value* action = member(entry, "action", Pickle::Type::text);
    if (action == nullptr) refuse("an entry of device_traces has no action");
    const std::string& text = pickle_.text(*action);
    return text == "alloc" ? Action::allocate : text == "free_completed" ? Action::free : Action::other;
  }

  std::size_t busiest(const std::vector<Value>& devices) {
    std::size_t best = 0;
    std::size_t busy = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (pickle_.type(devices[i]) != Pickle::Type::list) refuse("device_traces is not a list of lists");
      if (!pickle_.items(devices[i]).empty()) ++busy;
      if (pickle_.items(devices[i]).size() > pickle_.items(devices[best]).size()) best = i;
    }
    if (devices.empty()) refuse("has no device in device_traces");
    if (busy > 1)
      builder_.note("of " + std::to_string(busy) + " devices, device " + std::to_string(best) +
                    " is read, which has most entries");
    return best;
  }

  void blocks_from_before(Value entries, std::size_t device) {
    std::unordered_set<std::uint64_t> seen;
    std::uint64_t added = 0;
    for (const Value entry : pickle_.items(entries)) {
      const Action action = action_of(entry);
      if (action == Action::other) continue;
      const auto address = static_cast<std::uint64_t>(number(entry, "addr"));
      if (!seen.insert(address).second || action == Action::allocate) continue;
      added += before(address, size(entry, "size"), number(entry, "stream"));
    }
    const Value* segments = member(pickle_.root(), "segments", Pickle::Type::list);
    if (segments == nullptr) return report(added);
    for (const Value segment : pickle_.items(*segments)) {
      const Value* blocks = member(segment, "blocks", Pickle::Type::list);
      const Value* where = member(segment, "device", Pickle::Type::integer);
      if (blocks == nullptr || (where != nullptr && pickle_.integer(*where) != static_cast<std::int64_t>(device)))
        continue;
      auto address = static_cast<std::uint64_t>(number(segment, "address"));
      for (const Value block : pickle_.items(*blocks)) {
        const Value* state = member(block, "state", Pickle::Type::text);
        const bool live = state != nullptr && pickle_.text(*state) == "active_allocated";
        const char* const asked = member(block, "requested_size", Pickle::Type::integer) ? "requested_size" : "size";
        if (live && !seen.contains(address)) added += before(address, size(block, asked), number(segment, "stream"));
        address += size(block, "size");
      }
    }
    report(added);
  }

  std::uint64_t before(std::uint64_t address, std::uint64_t bytes, std::int64_t stream) {
    return builder_.allocate(address, bytes, static_cast<std::uint64_t>(stream), {.address = address}) ? 1 : 0;
  }

  void report(std::uint64_t added) {
    if (added > 0) builder_.note(std::to_string(added) + " blocks from before the record are put in front");
  }

  const std::string& path_;
  const Pickle& pickle_;
  TraceBuilder builder_;
  std::uint64_t reused_ = 0;
  bool timed_ = true;
  std::optional<std::int64_t> began_us_;
};

}  // namespace

Trace read_pytorch_snapshot(Source& source) {
  const Pickle pickle(source);
  return Snapshot(source.path(), pickle).read();
}

}  // namespace gpupool::cli
