// See trace_writer.h.
#include "preload/trace_writer.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "config/text.h"
#include "live/futex.h"
#include "live/taken.h"
#include "preload/log.h"
#include "preload/quiet_thread.h"

namespace gpupool {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

}  // namespace

TraceWriter::TraceWriter(std::string path, std::string text, PoolText pools)
    : wanted_path_(std::move(path)), text_(std::move(text)), pools_(std::move(pools)), began_(now()) {
  batch_.reserve(kBatch);
  payload_.resize(kBatch * sizeof(TraceRecord));
  thread_ = quiet_thread([this] { run(); });
}

TraceWriter::~TraceWriter() { finish(); }

void TraceWriter::finish() {
  stop_.store(1, std::memory_order_release);
  futex_wake(stop_);
  if (thread_.joinable()) thread_.join();
}

/// Of a few readings the one whose two clocks lie closest together: between two of them a thread may lose the
/// processor.
TraceWriter::Moment TraceWriter::now() const {
  Moment closest{};
  std::uint64_t least = ~std::uint64_t{0};
  for (int reading = 0; reading < 4; ++reading) {
    const std::uint64_t before = clock_.ticks();
    const std::uint64_t ns = monotonic_clock_ns();
    const std::uint64_t apart = clock_.ticks() - before;
    if (apart >= least) continue;
    least = apart;
    closest = {before + apart / 2, ns};
  }
  return closest;
}

void TraceWriter::run() try {
  if (!file_.create(wanted_path_))
    complain("cannot write the trace", errno);
  else if (file_.path() != wanted_path_)
    log::warn(taken_text(wanted_path_, "trace", file_.path()));
  append_text();
  for (bool stop = false; !stop;) {
    futex_wait(stop_, 0, std::chrono::milliseconds(kWakeMs));
    stop = stop_.load(std::memory_order_acquire) != 0;
    while (drain()) write_batch();
    if (!batch_.empty() && (stop || monotonic_clock_ns() - batch_began_ns_ > kFlushMs * kMillisecond)) write_batch();
  }
} catch (const std::bad_alloc&) {
  return;  // no host memory: the ring fills, and the rest is dropped
}

/// True when a whole batch is together.
bool TraceWriter::drain() {
  TraceRecord record;
  while (batch_.size() < kBatch) {
    if (!ring_.pop(record)) return false;
    if (batch_.empty()) batch_began_ns_ = monotonic_clock_ns();
    batch_.push_back(record);
  }
  return true;
}

void TraceWriter::append_text() {
  if (!text_.empty() && append(TraceBlockKind::kText, 0, began_, trace_bytes(text_))) text_.clear();
}

void TraceWriter::write_batch() {
  text_ += pools_(pools_told_);
  append_text();
  const std::size_t bytes = batch_.size() * sizeof(TraceRecord);
  spread_records(batch_, payload_.data());
  if (append(TraceBlockKind::kRecords, static_cast<std::uint32_t>(batch_.size()), now(), {payload_.data(), bytes}))
    written_ += batch_.size();
  else
    lost_ += batch_.size();
  batch_.clear();
}

bool TraceWriter::append(TraceBlockKind kind, std::uint32_t count, Moment moment,
                         std::span<const unsigned char> payload) {
  TraceBlockHead head;
  head.kind = kind;
  head.count = count;
  head.dropped = dropped();
  head.ticks = moment.ticks;
  head.monotonic_ns = moment.ns;
  if (file_.append(head, payload)) return true;
  complain("the trace has gaps", errno);
  return false;
}

void TraceWriter::complain(const char* doing, int error) {
  if (std::exchange(complained_, true)) return;
  log::warn(std::string(doing) + ": " + escaped(wanted_path_, wanted_path_.size()) + ": " + std::strerror(error));
}

}  // namespace gpupool
