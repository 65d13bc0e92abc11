// See torch_snapshot.h. Keys and actions are those of PyTorch 2.x (torch/csrc/cuda/memory_snapshot.cpp): the viewer
// undoes the events from the end, so every block has to lie in a segment that is there at that moment.
#include "cli/trace/torch_snapshot.h"

#include <algorithm>
#include <map>

#include "cli/console.h"
#include "cli/trace/pickle_writer.h"
#include "config/bytes.h"
#include "config/text.h"
#include "pool/granule.h"

namespace gpupool::cli {
namespace {

constexpr std::uint64_t kPiece = kHandleGranularity;
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 62;
constexpr std::int64_t kSmallSegment = 2 << 20;  // what PyTorch calls small

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Where blocks have been: ranges of whole pieces that do not touch each other.
class Segments {
 public:
  /// Calls found(begin, end, joins) for each part of a block that no segment holds yet; `joins`: it touches one.
  template <class Found>
  void touch(std::uint64_t address, std::uint64_t bytes, Found found) {
    const std::uint64_t end = (address + bytes + kPiece - 1) / kPiece * kPiece;
    std::uint64_t begin = address / kPiece * kPiece;
    while (begin < end) {
      const auto next = ranges_.upper_bound(begin);
      if (next != ranges_.begin() && std::prev(next)->second > begin) {
        begin = std::prev(next)->second;
        continue;
      }
      const std::uint64_t stop = next == ranges_.end() ? end : std::min(end, next->first);
      found(begin, stop, add(begin, stop));
      begin = stop;
    }
  }

  const std::map<std::uint64_t, std::uint64_t>& ranges() const { return ranges_; }

 private:
  bool add(std::uint64_t begin, std::uint64_t end) {
    const auto [added, fresh] = ranges_.emplace(begin, end);
    auto at = added;
    bool joined = false;
    if (at != ranges_.begin() && std::prev(at)->second == begin) {
      const auto before = std::prev(at);
      before->second = end;
      ranges_.erase(at);
      at = before;
      joined = true;
    }
    if (const auto after = std::next(at); after != ranges_.end() && after->first == end) {
      at->second = after->second;
      ranges_.erase(after);
      joined = true;
    }
    return joined;
  }

  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin to end
};

class Device {
 public:
  explicit Device(const Trace& trace) : trace_(trace) {}

  void write_history(PickleWriter& out) {
    std::size_t next_mark = 0;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      for (; next_mark < trace_.marks.size() && trace_.marks[next_mark].event <= i; ++next_mark)
        mark(out, trace_.marks[next_mark]);
      event(out, trace_.events[i]);
    }
    for (; next_mark < trace_.marks.size(); ++next_mark) mark(out, trace_.marks[next_mark]);
  }

  void write_segments(PickleWriter& out) const {
    for (const auto& [begin, end] : segments_.ranges()) segment(out, begin, end);
  }

 private:
  void event(PickleWriter& out, const Event& event) {
    const std::uint64_t address = event.seen.address;
    if (event.bytes != 0) {
      if (address >= kHighestAddress) return;
      segments_.touch(address, event.bytes, [&](std::uint64_t begin, std::uint64_t end, bool joins) {
        entry(out, joins ? "segment_map" : "segment_alloc", begin, end - begin, 0, event.seen.time_ns);
      });
      live_[address] = event.bytes;
      entry(out, "alloc", address, event.bytes, stream(event), event.seen.time_ns);
      return;
    }
    const auto block = live_.find(address);
    if (block == live_.end()) return;
    entry(out, "free_requested", address, block->second, stream(event), event.seen.time_ns);
    entry(out, "free_completed", address, block->second, stream(event), event.seen.time_ns);
    live_.erase(block);
  }

  void mark(PickleWriter& out, const Mark& mark) {
    if (mark.kind != MarkKind::out_of_memory) return;
    const std::uint64_t limit = trace_.origin.limit;
    begin_entry(out, "oom", 0, mark.bytes, 0, mark.time_ns);
    out.item("device_free", number(limit > mark.reserved ? limit - mark.reserved : 0)).append();
  }

  static std::int64_t stream(const Event& event) { return event.stream == kPlain ? 0 : std::int64_t{event.stream} + 1; }

  void begin_entry(PickleWriter& out, std::string_view action, std::uint64_t address, std::uint64_t bytes,
                   std::int64_t on, std::uint64_t time_ns) const {
    out.begin_dict().item("action", action).item("addr", number(address)).item("size", number(bytes));
    out.item("stream", on).item("time_us", trace_.origin.began_unix_ns / 1000 + number(time_ns / 1000));
    out.text("frames").empty_list().set();
  }

  void entry(PickleWriter& out, std::string_view action, std::uint64_t address, std::uint64_t bytes, std::int64_t on,
             std::uint64_t time_ns) const {
    begin_entry(out, action, address, bytes, on, time_ns);
    out.append();
  }

  void segment(PickleWriter& out, std::uint64_t begin, std::uint64_t end) const {
    const auto first = live_.lower_bound(begin);
    const auto last = live_.lower_bound(end);
    std::uint64_t taken = 0;
    std::uint64_t requested = 0;
    for (auto block = first; block != last; ++block) taken += rounded(block->second), requested += block->second;
    const std::int64_t size = number(end - begin);
    out.begin_dict().item("device", trace_.origin.device).item("address", number(begin)).item("total_size", size);
    out.item("allocated_size", number(taken)).item("active_size", number(taken));
    out.item("requested_size", number(requested)).item("stream", 0);
    out.item("segment_type", size <= kSmallSegment ? "small" : "large");
    out.text("segment_pool_id").pair(0, 0).set().text("is_expandable").boolean(true).set();
    out.text("frames").empty_list().set().text("blocks").begin_list();
    std::uint64_t at = begin;
    for (auto block = first; block != last; ++block) {
      if (block->first > at) this->block(out, at, block->first - at, 0, "inactive");
      this->block(out, block->first, rounded(block->second), block->second, "active_allocated");
      at = block->first + rounded(block->second);
    }
    if (at < end) block(out, at, end - at, 0, "inactive");
    out.set().append();
  }

  static void block(PickleWriter& out, std::uint64_t address, std::uint64_t bytes, std::uint64_t requested,
                    std::string_view state) {
    out.begin_dict().item("address", number(address)).item("size", number(bytes));
    out.item("requested_size", number(requested)).item("state", state).text("frames").empty_list().set().append();
  }

  static std::uint64_t rounded(std::uint64_t bytes) {
    return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  }

  const Trace& trace_;
  Segments segments_;
  std::map<std::uint64_t, std::uint64_t> live_;  // address to bytes
};

}  // namespace

std::string torch_snapshot(const std::vector<Trace>& traces) {
  constexpr std::uint32_t kMostDevices = 256;
  std::vector<Device> devices;
  PickleWriter out;
  out.begin_dict().text("device_traces").begin_list();
  std::uint32_t next = 0;
  for (const Trace& trace : traces) {
    if (!trace.placed) {
      throw Problem(Exit::input, escaped(trace.name, trace.name.size()) +
                                     ": the trace has no addresses; record one with gpupool run --trace");
    }
    if (trace.origin.device < next || trace.origin.device >= kMostDevices) continue;
    for (; next < trace.origin.device; ++next) out.empty_list().append();  // its place in the list is its ordinal
    devices.emplace_back(trace).write_history(out.begin_list());
    out.append();
    ++next;
  }
  out.set().text("segments").begin_list();
  for (const Device& device : devices) device.write_segments(out);
  out.set().text("allocator_settings").begin_dict().item("PYTORCH_CUDA_ALLOC_CONF", "").set();
  return out.text("external_annotations").empty_list().set().finish();
}

}  // namespace gpupool::cli
