// Live pages, as a reader finds them. A page is copied out of its file in one go, never mapped, so that nothing its
// owner (or a forger of the same user) does to the file can hurt the reader; each number is bounded before it is used.
// Files of other users, links, and what is open to others are not looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/page.h"
#include "live/report.h"

namespace gpupool {

enum class Life : std::uint8_t { kRunning, kGone };

struct PageCopy {
  std::string path;
  std::uint64_t inode = 0;  // of the file that was read
  Life life = Life::kRunning;
  std::unique_ptr<Page> page;
  std::vector<std::unique_ptr<PoolSlot>> pools;
  std::string flaw = {};  // what is missing or cannot be, a sentence; what is left of the page is here all the same

  std::vector<const PoolSlot*> slots() const;
  Report report() const { return collect(*page, slots(), life == Life::kGone ? Ending::kKilled : Ending::kRunning); }
};

struct PagesFound {
  std::vector<PageCopy> pages;  // by pid
  // A sentence for each file that is no page in spite of its name, or a flawed one, and for a folder that is none.
  std::vector<std::string> problems;
};

/// All pages of this user in `folder`, but not the file called `except`: a process must not open its own.
PagesFound find_pages(const std::string& folder, const std::string& except = "");

/// One file. Nothing where it is no page, and why in `problem`; no problem when it has just gone away.
std::optional<PageCopy> read_page(const std::string& path, std::string& problem);

/// The live bytes of a process that has been found, the driver's share included: a few words of its page, for those who
/// look often. Nothing when the page is gone.
std::optional<std::uint64_t> live_now(const PageCopy& copy);

/// Removes the page of a process that is gone, unless another reader has been quicker: false.
bool claim_page(const PageCopy& copy);

}  // namespace gpupool
