// Timelines: when freed memory may be used again. One line per stream that used the tape, and line 0 for the whole
// context (plain requests and frees). Every free is covered by a numbered record of its line; this class knows which
// records exist, which are complete and who has already waited for which, and answers what a new owner must do before
// it touches a fragment. Three facts are kept apart: "recorded", "a stream has waited" (which cleans for that stream
// alone) and "complete" (which cleans for everybody). Owned by the tape, under its lock. See docs/decisions/ for why
// records are made at the free.
//
// Note LATE: a record made after the free also covers work submitted in between. Waiting for it could wait for work
// that itself waits for the new owner, so a late record is only ever looked at (is it complete?), not waited for on the
// device.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pool/fence.h"
#include "pool/fragments.h"
#include "pool/stats.h"
#include "pool/tape_types.h"

namespace gpupool {

/// What a requester must do before it may use a fragment.
enum class Need : std::uint8_t {
  kNothing,     // ordered already
  kWait,        // put a wait for its record on the requester's line
  kCompletion,  // only once its record is known complete
};

class Timelines {
 public:
  Timelines(Fence& fence, ReusePolicy policy, const Fragments& fragments, Stats& stats);

  Line line_of(StreamRef stream, bool per_thread);
  /// The stream ends: covers its unrecorded frees while it can, and gives its fragments to anyone.
  void ending(StreamRef stream, StreamEnd end);

  /// Work submitted on `line` so far may touch the `bytes` that are being freed: returns the number of the record that
  /// covers it, made now or, where that is put off, later. 0: nothing to wait for. `error`: a driver error the program
  /// should see, else 0.
  std::uint64_t mark_free(Line line, std::uint64_t bytes, int& error) {
    Timeline& freeing = lines_[line];
    if (line == kContextLine || !puts_off(freeing, bytes)) return mark_now(freeing, error);
    freeing.put_off = true;
    return freeing.recorded + 1;
  }

  bool is_alive(Line line) const { return lines_[line].alive; }
  /// No driver call.
  Need need(const Request& request, Line owner, std::uint64_t record) const {
    const Timeline& line = lines_[owner];
    bool own = owner == request.line && owner != kContextLine && line.alive;
    return own || record <= line.complete ? Need::kNothing : need_of_other(request, owner, record);
  }
  /// Puts the wait on the device. False: refused, treat as kCompletion.
  bool wait(Line requester, Line owner, std::uint64_t record);
  /// Asks the driver whether the record is complete, making a late one first if none exists.
  Progress ask(Line owner, std::uint64_t record);
  /// The record that covers every free of the line so far, made or put off.
  std::uint64_t newest(Line owner) const { return lines_[owner].recorded + (lines_[owner].put_off ? 1 : 0); }
  bool is_made(Line owner, std::uint64_t record) const { return record <= lines_[owner].recorded; }
  /// Does the record cover nothing that was submitted after its free?
  bool is_exact(Line owner, std::uint64_t record) const;
  bool complete(Line owner, std::uint64_t record) { return ask(owner, record) == Progress::kDone; }
  /// Records of a line complete in order: what was found pending is not asked again until this is called.
  void forget_pending() { ++round_; }
  /// The same, blocking while patience lasts. The first wait in vain ends it, and what was waited for in vain is not
  /// waited for again.
  bool wait_on_host(Line owner, std::uint64_t record);
  /// For those who wait in their own way: was this record, or one before it on its line, waited for in vain?
  bool is_stuck(Line owner, std::uint64_t record);
  void waited_in_vain(Line owner, std::uint64_t record) { lines_[owner].stuck = record; }
  /// The same for the longest wait there is, which is not made twice.
  bool is_given_up(Line owner);
  void give_up(Line owner, std::uint64_t record) { lines_[owner].given_up = record; }
  Line lines() const { return static_cast<Line>(lines_.size()); }
  /// How long the host may be blocked in all from now on. Work in flight may wait for what another thread, itself
  /// waiting for the tape's lock, has yet to submit; so no wait is without end.
  void grant_patience(unsigned milliseconds) { patience_ms_ = milliseconds; }

  /// Makes every record that was put off: when the last capture ends, and when a second stream appears.
  void record_put_off();

  const char* validate() const;

 private:
  struct Record {
    std::uint64_t number = 0;  // where one is missing, the next one covers what it was to cover
    EventId event = kNoEvent;
    bool late = false;
  };
  struct Timeline {
    StreamRef stream = kWholeContext;
    bool alive = false;
    bool per_thread = false;
    bool put_off = false;        // a free was not recorded yet: its number is recorded + 1
    std::uint64_t recorded = 0;  // number of the newest record
    std::uint64_t complete = 0;  // all records up to this one are known complete
    std::uint64_t pending = 0;   // in `round`, this record and all later ones are known pending
    std::uint64_t round = 0;
    std::uint64_t stuck = 0;     // this record did not complete while somebody waited; 0: none
    std::uint64_t given_up = 0;  // nor this one while somebody waited long
    std::vector<Record> ring;    // record n lies at n modulo the ring's size (a power of two)
    std::vector<std::uint64_t>
        waited;  // by line: this line's later work is ordered behind that line's records up to here
  };

  static constexpr std::uint64_t kLargeShare = 32;  // a block of more than this part of what is held is large

  enum class Timing : std::uint8_t { kAtTheFree, kLate };
  bool make_record(Timeline& line, StreamRef on, Timing timing, int& error);
  bool make_late_record(Timeline& line);
  Need need_of_other(const Request& request, Line owner, std::uint64_t record) const;
  EventId take_event();
  void spare(EventId event);
  Record* make_room(Timeline& line, std::uint64_t number);
  const Record* find(const Timeline& line, std::uint64_t number) const;
  const Record* find_or_later(const Timeline& line, std::uint64_t number) const;
  static std::uint64_t waited(const Timeline& line, Line owner) {
    return owner < line.waited.size() ? line.waited[owner] : 0;
  }
  // An only stream uses again what it freed without any record. For a large block one is made all the same: a stream
  // that appears when memory is short may wait for that, and must not for one that is made late.
  bool puts_off(const Timeline& line, std::uint64_t bytes) const {
    return !line.per_thread && streams_alive_ <= 1 && bytes <= stats_.reserved.current() / kLargeShare;
  }
  std::size_t unused();
  void forget_waits_for(Line owner);
  std::uint64_t mark_now(Timeline& line, int& error);

  Fence& fence_;
  const ReusePolicy policy_;
  const Fragments& fragments_;
  Stats& stats_;
  std::vector<Timeline> lines_;
  std::unordered_map<StreamRef, Line> of_stream_;  // of those that are alive
  std::vector<Line> free_lines_;                   // of streams that are gone; fragments may still name some
  std::vector<EventId> spare_events_;
  unsigned streams_alive_ = 0;
  unsigned patience_ms_ = 0;
  std::uint64_t round_ = 1;
};

}  // namespace gpupool
