// See read.h: what trace.path recorded. One trace for each device. Records may be missing anywhere, so a request at an
// address that is still live is preceded by a free, and a free of nothing is counted.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "cli/trace/blocks.h"
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "config/text.h"
#include "pool/trace_format.h"

namespace gpupool::cli {
namespace {

constexpr std::size_t kMostTextLines = 100'000;

// From ticks to nanoseconds since the trace began, on the line through two moments.
class Clock {
 public:
  void moment(std::uint64_t ticks, std::uint64_t ns) {
    if (!begun_) begun_ = true, base_ns_ = ns;
    ticks_before_ = ticks_, ns_before_ = ns_;
    ticks_ = ticks, ns_ = ns;
  }
  std::uint64_t at(std::uint64_t ticks) const {
    const double rate = ns_ >= ns_before_ ? since(ns_, ns_before_) / std::max(since(ticks_, ticks_before_), 1.0) : 0;
    const double ns = since(ns_before_, base_ns_) + since(ticks, ticks_before_) * rate;
    return ns > 0 && ns < 9e18 ? static_cast<std::uint64_t>(ns) : 0;
  }

 private:
  // Both are too large for a double to hold every unit; the difference is not.
  static double since(std::uint64_t later, std::uint64_t earlier) {
    return double(static_cast<std::int64_t>(later - earlier));
  }

  bool begun_ = false;
  std::uint64_t base_ns_ = 0;
  std::uint64_t ticks_before_ = 0, ns_before_ = 0;
  std::uint64_t ticks_ = 0, ns_ = 0;
};

class Reader {
 public:
  explicit Reader(Source& source) : source_(source), blocks_(source) {}

  std::vector<Trace> read() {
    while (blocks_.next()) {
      const TraceBlockHead& head = blocks_.head();
      dropped_ = std::max(dropped_, head.dropped);
      if (blocks_.count() == 1 || head.kind == TraceBlockKind::kRecords) clock_.moment(head.ticks, head.monotonic_ns);
      if (head.kind == TraceBlockKind::kText) text();
      if (head.kind == TraceBlockKind::kRecords && head.payload == head.count * std::uint64_t{sizeof(TraceRecord)})
        records(head.count);
    }
    return finish();
  }

 private:
  struct Pool {
    Origin origin;
    std::uint64_t reserved = 0;
    bool known = false;
  };
  struct Device {
    TraceBuilder builder;
    std::uint64_t added = 0;
    std::uint64_t unknown = 0;
  };

  // Lines of TYPE NUMBER KEY VALUE; what a later version says besides is passed over.
  void text() {
    std::string_view rest = blocks_.payload();
    while (!rest.empty() && text_lines_++ < kMostTextLines) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      std::string_view words[3];
      std::string_view value = line;
      for (std::string_view& word : words) {
        word = value.substr(0, value.find(' '));
        value.remove_prefix(std::min(word.size() + 1, value.size()));
      }
      const std::uint64_t number = number_in(words[1]).value_or(kTraceNoPool);
      if (number >= kTraceDevicePools) continue;
      if (words[0] == "call" && words[2] == "name") calls_[static_cast<std::uint16_t>(number)] = value;
      if (words[0] == "process") process(words[2], value);
      if (words[0] == "pool") pool(pools_[static_cast<std::uint16_t>(number)], words[2], value);
    }
  }

  void process(std::string_view key, std::string_view value) {
    if (key == "pid") process_.pid = number_in(value).value_or(0);
    if (key == "executable") process_.executable = value;
    if (key == "host") process_.host = value;
    if (key == "rank") process_.rank = value;
    if (key == "strategy") process_.strategy = value;
    if (key == "began_unix_ns") process_.began_unix_ns = static_cast<std::int64_t>(number_in(value).value_or(0));
  }

  static void pool(Pool& pool, std::string_view key, std::string_view value) {
    pool.known = true;
    if (key == "device") pool.origin.device = static_cast<std::uint32_t>(number_in(value).value_or(0));
    if (key == "card") pool.origin.card = value;
    if (key == "uuid") pool.origin.uuid = value;
    if (key == "card_bytes") pool.origin.card_bytes = number_in(value).value_or(0);
    if (key == "limit") pool.origin.limit = number_in(value).value_or(0);
    if (key == "handle") pool.origin.handle = number_in(value).value_or(0);
  }

  void records(std::uint32_t count) {
    records_.resize(count);
    gather_records(trace_bytes(blocks_.payload()).data(), records_);
    for (const TraceRecord& record : records_) {
      if (record.kind == TraceKind::kRequest)
        request(record);
      else if (record.kind == TraceKind::kFree)
        free(record);
      else
        mark(record);
    }
  }

  std::uint32_t device_of(std::uint16_t pool) {
    if (pool >= kTraceDevicePools) return pool == kTraceNoPool ? 0 : pool - kTraceDevicePools;
    return pools_[pool].origin.device;
  }

  static std::optional<std::uint64_t> stream_of(const TraceRecord& record) {
    return record.stream == kTraceNoStream ? std::nullopt : std::optional{record.stream};
  }

  Seen seen(const TraceRecord& record, TraceBuilder& builder) {
    Seen seen;
    seen.time_ns = clock_.at(record.ticks);
    seen.address = record.address;
    seen.thread = builder.thread_number(record.thread);
    seen.call = call_of(record, builder);
    seen.served = record.flags & kTraceByDriver ? Served::by_driver : Served::by_pool;
    seen.fenced = (record.flags & kTraceFenced) != 0;
    return seen;
  }

  std::uint16_t call_of(const TraceRecord& record, TraceBuilder& builder) {
    const auto name = calls_.find(record.call);
    return name == calls_.end() ? 0 : builder.call_number(name->second);
  }

  void request(const TraceRecord& record) {
    if (record.bytes == 0 || record.bytes > kLargestRequest) return;
    Device& device = devices_[device_of(record.pool)];
    const Seen facts = seen(record, device.builder);
    if (device.builder.free(record.address, std::nullopt, facts)) ++device.added;
    device.builder.allocate(record.address, record.bytes, stream_of(record), facts);
    if (record.pool < kTraceDevicePools) owner_[record.address] = record.pool;
  }

  void free(const TraceRecord& record) {
    if (record.flags &
        kTraceByDriver) {  // the device is not known, and the memory may be of a kind that is not recorded
      for (auto& [number, device] : devices_) {
        if (device.builder.is_live(record.address))
          device.builder.free(record.address, {}, seen(record, device.builder));
      }
      return;
    }
    Device& device = devices_[device_of(record.pool)];
    owner_.erase(record.address);
    if (!device.builder.free(record.address, stream_of(record), seen(record, device.builder))) ++device.unknown;
  }

  void mark(const TraceRecord& record) {
    const auto kind = static_cast<std::uint8_t>(record.kind) - static_cast<unsigned>(TraceKind::kMark);
    if (kind > static_cast<unsigned>(kLastMark)) return;
    Device& device = devices_[device_of(record.pool)];
    Mark made;
    made.kind = static_cast<MarkKind>(kind);
    made.time_ns = clock_.at(record.ticks);
    made.bytes = record.bytes;
    made.count = record.address;
    made.call = call_of(record, device.builder);
    if (record.pool < kTraceDevicePools) pools_[record.pool].reserved = record.stream;
    for (const auto& [number, pool] : pools_) {
      if (pool.origin.device == device_of(record.pool)) made.reserved += pool.reserved;
    }
    if (made.kind == MarkKind::retired) take_along(record, device);
    device.builder.mark(made);
  }

  // What lived in a pool that is gone.
  void take_along(const TraceRecord& record, Device& device) {
    const Seen facts = seen(record, device.builder);
    std::erase_if(owner_, [&](const auto& entry) {
      if (entry.second != record.pool) return false;
      device.builder.free(entry.first, std::nullopt, facts);
      return true;
    });
  }

  std::vector<Trace> finish() {
    std::vector<Trace> all;
    for (auto& [number, device] : devices_) {
      TraceBuilder& builder = device.builder;
      for (const std::string& line : blocks_.notes()) builder.note(line);
      if (dropped_ > 0) builder.note(std::to_string(dropped_) + " records were lost when it was recorded");
      if (device.added > 0) builder.note(std::to_string(device.added) + " frees that were not recorded are added");
      if (device.unknown > 0) builder.note(std::to_string(device.unknown) + " frees of unknown blocks are left out");
      Trace& trace = builder.trace();
      trace.timed = trace.placed = true;
      trace.dropped = dropped_;
      trace.origin = process_;
      trace.origin.device = number;
      for (const auto& [pool_number, pool] : pools_) {
        if (pool.known && pool.origin.device == number) describe(trace.origin, pool.origin);
      }
      all.push_back(builder.finish(source_.path(), "gpupool"));
    }
    if (all.empty()) {
      TraceBuilder none;
      for (const std::string& line : blocks_.notes()) none.note(line);
      all.push_back(none.finish(source_.path(), "gpupool"));
    }
    return all;
  }

  static void describe(Origin& origin, const Origin& pool) {
    origin.card = pool.card;
    origin.uuid = pool.uuid;
    origin.card_bytes = pool.card_bytes;
    origin.limit = pool.limit;
    origin.handle = pool.handle;
  }

  static constexpr MarkKind kLastMark = MarkKind::retired;

  Source& source_;
  TraceBlocks blocks_;
  Clock clock_;
  std::vector<TraceRecord> records_;
  Origin process_;
  std::map<std::uint16_t, std::string> calls_;
  std::map<std::uint16_t, Pool> pools_;
  std::map<std::uint32_t, Device> devices_;
  std::unordered_map<std::uint64_t, std::uint16_t> owner_;  // of live blocks: the pool
  std::uint64_t dropped_ = 0;
  std::size_t text_lines_ = 0;
};

}  // namespace

std::vector<Trace> read_recorded(Source& source) { return Reader(source).read(); }

}  // namespace gpupool::cli
