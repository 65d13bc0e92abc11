// How one process of a user asks another to give device memory back: a letter in the other's live page. The asker takes
// a free letter, writes it, rings the bell and waits for the answer, never longer than it chooses to; the owner's
// thread sleeps on the bell (a futex, so that an idle process costs nothing and answers all the same). A letter belongs
// to whoever moved its state last, so no lock is needed, and a process that dies with one in hand blocks nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "live/page.h"

namespace gpupool {

struct GiveBack {
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::string uuid = {};      // of the card; empty for all
  std::uint64_t want = kAll;  // bytes, of all pools together
  std::uint64_t keep = 0;     // what each pool may keep in any case
};

enum class Reply : std::uint8_t {
  kGiven,    // `given` says how much
  kNotYet,   // no answer in time; the letter has been taken back, or will be answered to nobody
  kNobody,   // the process has no thread that reads letters
  kTooMany,  // all letters are in use
  kNoPage,   // the file is none, is gone, or is not ours
};

struct Answer {
  Reply reply = Reply::kNoPage;
  std::uint64_t given = 0;
};

/// Asks the owner of the page at `path`, which must not be this process itself.
Answer ask_for_memory(const std::string& path, const GiveBack& request, std::chrono::milliseconds patience);

/// The owner's side. Answers every letter that lies there.
void answer_letters(Mailbox& box, const std::function<std::uint64_t(const GiveBack&)>& give);
/// Sleeps while the bell still shows `heard`.
void wait_for_bell(Mailbox& box, std::uint32_t heard);
void ring(Mailbox& box);

}  // namespace gpupool
