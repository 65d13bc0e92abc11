// A live page as a System V segment: memory that outlives its process as a file does, and that nobody can cut short, so
// that whoever writes into it cannot be ended by SIGBUS. Segments have numbers instead of names and belong to an IPC
// namespace, as /dev/shm does: there the file of a page is a PageLink. In any other folder the file is the page. See
// docs/decisions/0019-a-page-cannot-be-cut-short.md. Used by the page's owner, and by readers, which trust nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "live/page.h"

namespace gpupool {

/// What the file says.
struct PageLink {
  std::uint64_t magic = kPageMagic;
  std::uint64_t version = 0x6b6e696c;  // "link" in memory, which no version of a page will be
  std::int64_t segment = -1;
  std::uint64_t ipc_namespace = 0;
  std::uint64_t started_ns = 0;  // the page's own, so that a number that was given anew is not taken for it
};

/// The link that a file is; nothing where it is something else.
std::optional<PageLink> read_link(int file);

/// The segment of a link, attached: with a size, and with the page that the link means in it. Only this user's.
class SharedSegment {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };
  SharedSegment(const PageLink& link, Access access);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  /// Null where it is none, another's, gone, or of another IPC namespace.
  Page* page() const { return page_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Whether nobody will ever reach it: it is of this namespace, and gone.
  bool is_gone() const { return gone_; }
  /// It goes when the last process that has it is gone.
  void remove() const;

 private:
  std::int64_t number_ = -1;
  Page* page_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool gone_ = false;
};

/// The owner's side. Does a page in this folder become a segment?
bool takes_segments(const std::string& folder);
/// A new segment in the place of the private memory of a page that has no pools yet; nothing where there is none to be
/// had. What else its threads write meanwhile may be lost.
std::optional<PageLink> move_to_segment(Page& page, std::uint64_t bytes);
void remove_segment(const PageLink& link);
/// Removes segments of that size that this user's processes have left a day ago or earlier: their links are gone, or
/// nobody wants their reports.
void remove_forgotten_segments(std::uint64_t bytes);

}  // namespace gpupool
