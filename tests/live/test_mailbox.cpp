// Letters between processes: each is answered once, by whoever reads; an asker never waits longer than it wants to.
#include <atomic>
#include <thread>
#include <vector>

#include "live/mailbox.h"
#include "tests/catch.h"
#include "tests/live/page_file.h"

using namespace gpupool;
using namespace gpupool::tests;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLong{60'000};

class Owner {
 public:
  explicit Owner(Mailbox& box) : box_(box) {
    box_.open = 1;
    thread_ = std::thread([this] {
      while (!stop_) {
        const std::uint32_t heard = box_.bell;
        answer_letters(box_, [this](const GiveBack& request) {
          ++served_;
          return request.uuid == "GPU-0" ? request.want + request.keep : 0;
        });
        if (!stop_) wait_for_bell(box_, heard);
      }
    });
  }
  ~Owner() {
    stop_ = true;
    ring(box_);
    thread_.join();
  }
  unsigned served() const { return served_; }

 private:
  Mailbox& box_;
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> served_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a letter is answered with what was given") {
  PageFile file;
  const Owner owner(file.page().mailbox);
  const Answer answer = ask_for_memory(file.path(), {"GPU-0", 100, 11}, kLong);
  CHECK(answer.reply == Reply::kGiven);
  CHECK(answer.given == 111);
  CHECK(ask_for_memory(file.path(), {"GPU-1", 100, 11}, kLong).given == 0);
}

TEST_CASE("many askers at once: each gets its own answer, and no letter is lost") {
  PageFile file;
  Owner owner(file.page().mailbox);
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> answered{0};
  std::vector<std::thread> askers;
  for (unsigned t = 0; t < 6; ++t) {
    askers.emplace_back([&, t] {
      for (unsigned i = 0; i < 200; ++i) {
        const Answer answer = ask_for_memory(file.path(), {"GPU-0", t * 1000, i}, kLong);
        ++answered;
        if (answer.reply != Reply::kGiven || answer.given != t * 1000 + i) ++wrong;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  CHECK(wrong == 0);
  CHECK(owner.served() == answered);
}

TEST_CASE("nobody reads: no wait; nobody answers: a bounded one, and the letter is free again") {
  PageFile file;
  CHECK(ask_for_memory(file.path(), {}, kLong).reply == Reply::kNobody);
  file.page().mailbox.open = 1;
  for (unsigned i = 0; i < 2 * Mailbox::kLetters; ++i) {
    CHECK(ask_for_memory(file.path(), {}, milliseconds(1)).reply == Reply::kNotYet);
  }
  for (Letter& letter : file.page().mailbox.letters) letter.state = 1;  // askers that died while they wrote
  CHECK(ask_for_memory(file.path(), {}, kLong).reply == Reply::kTooMany);
}

TEST_CASE("what is no page is not written to") {
  PageFile file;
  file.page().mailbox.open = 1;
  file.page().version = 2;
  CHECK(ask_for_memory(file.path(), {}, kLong).reply == Reply::kNoPage);
  CHECK(ask_for_memory(file.folder() + "/none", {}, kLong).reply == Reply::kNoPage);
  CHECK(file.page().mailbox.bell == 0);
}
