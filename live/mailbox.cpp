// See mailbox.h. The page's futexes lie in shared memory, so none of them is a private one.
#include "live/mailbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "live/futex.h"
#include "live/shared_segment.h"

namespace gpupool {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

enum State : std::uint32_t { kFree, kWriting, kAsked, kServing, kAnswered };

// An answer that its asker did not wait for frees its letter after this time.
constexpr std::uint64_t kForgottenNs = 10'000'000'000;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(nanoseconds(steady_clock::now().time_since_epoch()).count());
}

bool move(Letter& letter, std::uint32_t from, std::uint32_t to) {
  return letter.state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

// The part of another process's page that is written to, mapped while a letter is under way.
class MappedPage {
 public:
  explicit MappedPage(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return;
    struct stat info {};
    const bool ours =
        fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
    if (const std::optional<PageLink> link = ours ? read_link(file) : std::nullopt) {
      segment_.emplace(*link, SharedSegment::Access::kWrite);
    } else if (ours && info.st_size >= off_t{sizeof(Page)}) {
      void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (memory != MAP_FAILED) page_ = static_cast<Page*>(memory);
    }
    close(file);
  }
  ~MappedPage() {
    if (page_) munmap(page_, sizeof(Page));
  }
  MappedPage(const MappedPage&) = delete;
  MappedPage& operator=(const MappedPage&) = delete;
  Page* get() const {
    Page* page = segment_ ? segment_->page() : page_;
    const bool known = page && page->magic.load(std::memory_order_acquire) == kPageMagic &&
                       page->version == kPageVersion && page->page_bytes == sizeof(Page);
    return known ? page : nullptr;
  }

 private:
  Page* page_ = nullptr;  // of a file
  std::optional<SharedSegment> segment_;
};

Answer wait_for_answer(Letter& letter, steady_clock::time_point end) {
  for (;;) {
    const std::uint32_t state = letter.state.load(std::memory_order_acquire);
    if (state == kAnswered) {
      const Answer answer{Reply::kGiven, letter.given};
      letter.state.store(kFree, std::memory_order_release);
      return answer;
    }
    const auto left = nanoseconds(end - steady_clock::now());
    if (left.count() <= 0) break;
    futex_wait(letter.state, state, left);
  }
  move(letter, kAsked, kFree);
  return {Reply::kNotYet, 0};
}

}  // namespace

Answer ask_for_memory(const std::string& path, const GiveBack& request, milliseconds patience) {
  const MappedPage mapped(path);
  Page* page = mapped.get();
  if (page == nullptr) return {Reply::kNoPage, 0};
  Mailbox& box = page->mailbox;
  if (box.open.load(std::memory_order_acquire) == 0) return {Reply::kNobody, 0};
  for (Letter& letter : box.letters) {
    if (!move(letter, kFree, kWriting)) continue;
    letter.from = static_cast<std::uint32_t>(getpid());
    letter.written_ns = now_ns();
    letter.want = request.want;
    letter.keep = request.keep;
    letter.given = 0;
    letter.uuid.set(request.uuid);
    letter.state.store(kAsked, std::memory_order_release);
    ring(box);
    return wait_for_answer(letter, steady_clock::now() + patience);
  }
  return {Reply::kTooMany, 0};
}

void answer_letters(Mailbox& box, const std::function<std::uint64_t(const GiveBack&)>& give) {
  for (Letter& letter : box.letters) {
    if (letter.state.load(std::memory_order_relaxed) == kAnswered && now_ns() - letter.written_ns > kForgottenNs)
      move(letter, kAnswered, kFree);
    if (!move(letter, kAsked, kServing)) continue;
    letter.given = give({letter.uuid.get(), letter.want, letter.keep});
    letter.state.store(kAnswered, std::memory_order_release);
    futex_wake(letter.state);
  }
}

void wait_for_bell(Mailbox& box, std::uint32_t heard) { futex_wait(box.bell, heard); }

void ring(Mailbox& box) {
  box.bell.fetch_add(1, std::memory_order_release);
  futex_wake(box.bell);
}

}  // namespace gpupool
