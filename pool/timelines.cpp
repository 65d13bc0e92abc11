#include "pool/timelines.h"

#include "pool/host_wait.h"

namespace gpupool {
namespace {

constexpr std::size_t kFirstRing = 64;
constexpr std::size_t kLargestRing = 4096;

}  // namespace

Timelines::Timelines(Fence& fence, ReusePolicy policy, const Fragments& fragments, Stats& stats)
    : fence_(fence), policy_(policy), fragments_(fragments), stats_(stats), lines_(1) {
  lines_[kContextLine].alive = true;
}

Line Timelines::line_of(StreamRef stream, bool per_thread) {
  if (const auto known = of_stream_.find(stream); known != of_stream_.end()) return known->second;
  const std::size_t place = unused();
  const Line fresh = free_lines_[place];
  of_stream_.emplace(stream, fresh);
  free_lines_[place] = free_lines_.back();
  free_lines_.pop_back();
  if (streams_alive_ == 1) record_put_off();
  Timeline& line = lines_[fresh];
  if (line.recorded != 0) forget_waits_for(fresh);
  for (const Record& record : line.ring) spare(record.event);
  line = Timeline{};
  line.stream = stream;
  line.per_thread = per_thread;
  line.alive = true;
  ++streams_alive_;
  return fresh;
}

/// The place among the free lines of one that no fragment names, made if there is none.
std::size_t Timelines::unused() {
  for (std::size_t i = 0; i < free_lines_.size(); ++i) {
    if (fragments_.count(free_lines_[i]) == 0) return i;
  }
  lines_.emplace_back();
  free_lines_.push_back(static_cast<Line>(lines_.size() - 1));
  return free_lines_.size() - 1;
}

void Timelines::forget_waits_for(Line owner) {
  for (Timeline& other : lines_) {
    if (owner < other.waited.size()) other.waited[owner] = 0;
  }
}

void Timelines::ending(StreamRef stream, StreamEnd end) {
  const auto known = of_stream_.find(stream);
  if (known == of_stream_.end()) return;
  Timeline& line = lines_[known->second];
  int ignored = 0;
  if (line.put_off && end == StreamEnd::kAhead) make_record(line, line.stream, Timing::kLate, ignored);
  free_lines_.push_back(known->second);
  of_stream_.erase(known);
  line.alive = false;
  --streams_alive_;
}

std::uint64_t Timelines::mark_now(Timeline& line, int& error) {
  error = 0;
  if (make_record(line, line.stream, Timing::kAtTheFree, error))
    return line.recorded <= line.complete ? 0 : line.recorded;
  line.put_off = true;
  return line.recorded + 1;
}

bool Timelines::make_record(Timeline& line, StreamRef on, Timing timing, int& error) {
  // Frees that were put off have a number of their own, and no record: this one comes late for them.
  const std::uint64_t number = line.recorded + (line.put_off && timing == Timing::kAtTheFree ? 2 : 1);
  Record* record = make_room(line, number);
  if (record == nullptr) {  // no event to be had: out of them, or the context is lost
    error = fence_.take_error();
    return false;
  }
  RecordResult result = fence_.record(on, record->event);
  if (result == RecordResult::kNotNow) return false;
  if (result == RecordResult::kFailed) {
    error = fence_.take_error();
    return false;
  }
  record->late = timing == Timing::kLate;
  record->number = line.recorded = number;
  line.put_off = false;
  if (result == RecordResult::kComplete) line.complete = line.recorded;
  stats_.records.add(1);
  return true;
}

Timelines::Record* Timelines::make_room(Timeline& line, std::uint64_t number) {
  if (line.ring.empty()) line.ring.resize(kFirstRing);
  std::uint64_t size = line.ring.size();
  if (number > size && number - size > line.complete) {
    // The ring is full of records not known complete. One look at its middle usually frees half of it.
    Line index = static_cast<Line>(&line - lines_.data());
    if (!complete(index, number - size / 2) && !complete(index, number - size) && size < kLargestRing) {
      std::vector<Record> larger(size * 2);
      for (const Record& record : line.ring) {
        if (record.number == 0) {
          spare(record.event);
        } else {
          larger[record.number % larger.size()] = record;
        }
      }
      line.ring = std::move(larger);
    }
  }
  Record& record = line.ring[number % line.ring.size()];
  if (record.event == kNoEvent) record.event = take_event();
  record.number = 0;
  return record.event == kNoEvent ? nullptr : &record;
}

EventId Timelines::take_event() {
  if (spare_events_.empty()) return fence_.make_event();
  EventId event = spare_events_.back();
  spare_events_.pop_back();
  return event;
}

void Timelines::spare(EventId event) {
  if (event != kNoEvent) spare_events_.push_back(event);
}

const Timelines::Record* Timelines::find(const Timeline& line, std::uint64_t number) const {
  if (line.ring.empty()) return nullptr;
  const Record& record = line.ring[number % line.ring.size()];
  return record.number == number && number != 0 ? &record : nullptr;
}

// A record whose place in the ring was needed by a later one is covered by any later one.
const Timelines::Record* Timelines::find_or_later(const Timeline& line, std::uint64_t number) const {
  for (; number <= line.recorded; ++number) {
    if (const Record* record = find(line, number)) return record;
  }
  return nullptr;
}

bool Timelines::is_exact(Line owner, std::uint64_t record) const {
  const Record* made = find(lines_[owner], record);
  return made != nullptr && !made->late;
}

// What is neither complete nor the requester's own.
Need Timelines::need_of_other(const Request& request, Line owner, std::uint64_t record) const {
  const Timeline& line = lines_[owner];
  if (record <= waited(lines_[request.line], owner)) return Need::kNothing;
  if (!request.may_wait || policy_ == ReusePolicy::kQuiescent) return Need::kCompletion;
  // Memory of a plain request may go to any stream of any thread. A wait of them all would stop work that natively goes
  // on, and that the record may be waiting for.
  if (request.line == kContextLine) return Need::kCompletion;
  const Record* made = owner == kContextLine ? find_or_later(line, record) : find(line, record);
  if (made == nullptr || made->late) return Need::kCompletion;
  // The free of another thread, which natively held up that thread alone.
  if (owner == kContextLine && made->number > request.own_free) return Need::kCompletion;
  return Need::kWait;
}

bool Timelines::wait(Line requester, Line owner, std::uint64_t record) {
  const Timeline& line = lines_[owner];
  const Record* made = owner == kContextLine ? find_or_later(line, record) : find(line, record);
  if (made == nullptr || !fence_.wait(lines_[requester].stream, made->event)) return false;
  Timeline& waiting = lines_[requester];
  if (waiting.waited.size() <= owner) waiting.waited.resize(owner + 1, 0);
  waiting.waited[owner] = made->number;
  stats_.fences.add(1);
  return true;
}

Progress Timelines::ask(Line owner, std::uint64_t record) {
  Timeline& line = lines_[owner];
  if (record <= line.complete) return Progress::kDone;
  if (line.round == round_ && record >= line.pending) return Progress::kPending;
  if (record > line.recorded) {
    if (!make_late_record(line)) return Progress::kUnknown;
    if (record <= line.complete) return Progress::kDone;
  }
  const Record* made = find_or_later(line, record);
  if (made == nullptr) return Progress::kUnknown;
  if (owner == kContextLine) stats_.unfenced.set(0);
  const Progress progress = fence_.query(made->event);
  if (progress == Progress::kDone) line.complete = made->number;
  if (progress == Progress::kPending) {
    line.pending = record;
    line.round = round_;
  }
  return progress;
}

bool Timelines::wait_on_host(Line owner, std::uint64_t record) {
  if (complete(owner, record)) return true;
  if (patience_ms_ == 0 || is_stuck(owner, record)) return false;
  Timeline& line = lines_[owner];
  // What is known pending without a look at the driver may not have a record yet.
  if (record > line.recorded && !make_late_record(line)) return false;
  const Record* made = find_or_later(line, record);
  if (made == nullptr) return false;
  const HostWait wait(stats_);
  if (!fence_.wait_on_host(made->event, patience_ms_)) {
    patience_ms_ = 0;
    line.stuck = made->number;
    return false;
  }
  if (made->number > line.complete) line.complete = made->number;
  return true;
}

bool Timelines::is_stuck(Line owner, std::uint64_t record) {
  Timeline& line = lines_[owner];
  if (line.stuck == 0 || record < line.stuck) return false;
  if (complete(owner, line.stuck)) line.stuck = 0;
  return line.stuck != 0;
}

bool Timelines::is_given_up(Line owner) {
  Timeline& line = lines_[owner];
  if (line.given_up != 0 && complete(owner, line.given_up)) line.given_up = 0;
  return line.given_up != 0;
}

// A stream that is gone, or that only its own thread can name, is covered by a record of the whole context.
bool Timelines::make_late_record(Timeline& line) {
  int ignored = 0;
  bool recordable = line.alive && !line.per_thread;
  return make_record(line, recordable ? line.stream : kWholeContext, Timing::kLate, ignored);
}

void Timelines::record_put_off() {
  for (Timeline& line : lines_) {
    if (line.put_off) make_late_record(line);
  }
}

const char* Timelines::validate() const {
  for (const Timeline& line : lines_) {
    if (line.complete > line.recorded) return "timelines: a record is complete that was never made";
    for (const Record& record : line.ring) {
      if (record.number > line.recorded) return "timelines: a record has a number of the future";
    }
    for (Line owner = 0; owner < line.waited.size(); ++owner) {
      if (line.waited[owner] > lines_[owner].recorded) return "timelines: waited for a record that was never made";
    }
  }
  return nullptr;
}

}  // namespace gpupool
