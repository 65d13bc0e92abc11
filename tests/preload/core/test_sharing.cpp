// Two and three processes on one card: what fits without gpupool fits with it, whoever came first.
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "live/mailbox.h"
#include "live/reader.h"
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool;
using namespace gpupool::tests;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One card of 4 GiB, and a process on it that holds `live` MiB and waits without a call until the test ends it.
class SharedCard {
 public:
  explicit SharedCard(unsigned live, const Environment& settings = {}, unsigned again = 0) {
    Environment all = environment(settings);
    all["CASE_LIVE"] = std::to_string(live);
    all["CASE_AGAIN"] = std::to_string(again);
    all["GPUPOOL_STATS_PATH"] = folder_ / "holder.json";
    holder_ = start_program({GPUPOOL_TEST_PROGRAM, "holder"}, all, Preload::kFront, says_);
    wait_while_running(holder_,
                       [this] { return access((folder_ / "held").c_str(), F_OK) == 0 && has_all_it_reserves(); });
  }
  ~SharedCard() {
    end();
    for (const PageCopy& copy : find_pages(pages()).pages) claim_page(copy);  // of those that were killed
  }
  SharedCard(const SharedCard&) = delete;
  SharedCard& operator=(const SharedCard&) = delete;

  pid_t start(const std::string& name, unsigned live, unsigned piece, const Folder& folder,
              const Environment& settings = {}) const {
    Environment all = environment(settings);
    all["CASE_LIVE"] = std::to_string(live);
    all["CASE_PIECE"] = std::to_string(piece);
    all["GPUPOOL_LOG_LEVEL"] = "info";
    return start_program({GPUPOOL_TEST_PROGRAM, name}, all, Preload::kFront, folder);
  }
  Outcome run(const std::string& name, unsigned live, unsigned piece, const Environment& settings = {}) const {
    const Folder folder;
    const int status = wait_for(start(name, live, piece, folder, settings));
    return {status, read_file(folder / "out"), read_file(folder / "err")};
  }
  int end() {
    if (holder_ == 0) return 0;
    std::ofstream(folder_ / "done");
    const int status = wait_for(holder_);
    holder_ = 0;
    return status;
  }
  std::string holder_says() const { return read_file(says_ / "out") + read_file(says_ / "err"); }
  json holder_report() const { return json::parse(read_file(folder_ / "holder.json")); }
  std::string pages() const { return pages_ / ""; }

 private:
  // Without a page one cannot know; the first part of the reservation is there in any case.
  bool has_all_it_reserves() const {
    for (const PageCopy& copy : find_pages(pages()).pages) {
      for (const PoolSlot* pool : copy.slots()) {
        if (pool->stats.reserved.current() < pool->pre_reserved) return false;
      }
    }
    return true;
  }

  Environment environment(const Environment& settings) const {
    Environment all{{"GPUPOOL_SIM_CARD", folder_ / "card"},
                    {"GPUPOOL_SIM_DEVICES", "1"},
                    {"GPUPOOL_STATS_SUMMARY", "off"},
                    {"GPUPOOL_STATS_PAGES", pages()},
                    {"CASE_FOLDER", folder_ / ""}};
    for (const auto& [name, value] : settings) all[name] = value;
    return all;
  }

  const Folder folder_;
  const Folder says_;
  const Folder pages_{kSharedMemory};
  pid_t holder_ = 0;
};

void fits(const Outcome& outcome) {
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.empty());
}

}  // namespace

TEST_CASE("a latecomer gets what the first process, idle as it is, has free") {
  SharedCard card(1024, {}, 2048);
  // 4 GiB less 512 MiB of headroom and the holder's 1 GiB leave 2.5 GiB; nearly all of it was reserved up front.
  const Outcome outcome = card.run("latecomer", 2300, 64);
  fits(outcome);
  CHECK(contains(outcome.err, "other processes gave back"));
  CHECK(card.end() == 0);
  INFO(card.holder_says());
  const json pool = card.holder_report()["pools"][0];
  CHECK(pool["trimmed_bytes"].get<std::uint64_t>() > std::uint64_t{1500} << 20);
  CHECK(pool["requests"] == 32 + 64);
}

TEST_CASE(
    "so do a third, one that grows, one that wants large pieces, one on slabs, and one that takes handles of its own") {
  const SharedCard card(1024);
  fits(card.run("latecomer", 1024, 512));
  fits(card.run("latecomer", 2048, 64, {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}}));
  fits(card.run("latecomer", 2048, 64, {{"GPUPOOL_POOL_BACKING", "arena"}}));
  fits(card.run("latecomer_of_handles", 2560, 0));
  fits(card.run("latecomer_of_handles", 2560, 0, {{"GPUPOOL_POOL_STRATEGY", "passthrough"}}));
}

TEST_CASE("what a neighbour would give is told to be free, before the first request and after it") {
  SharedCard card(1024);
  const Outcome outcome = card.run("latecomer_that_looks", 700, 0);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  // 4 GiB less the holder's 1 GiB, headroom and what the contexts take.
  CHECK(std::strtoul(outcome.out.c_str(), nullptr, 10) > 2200);
  CHECK(std::strtoul(outcome.out.c_str(), nullptr, 10) <= 3072);
  const Outcome counted = card.run("latecomer_that_looks", 700, 0, {{"GPUPOOL_POOL_STRATEGY", "passthrough"}});
  INFO(counted.out << counted.err);
  CHECK(counted.status == 0);
  CHECK(std::strtoul(counted.out.c_str(), nullptr, 10) > 2200);
  CHECK(card.end() == 0);
}

TEST_CASE("three at once") {
  SharedCard card(900);
  const Folder says[2];
  std::vector<pid_t> latecomers;
  for (const Folder& folder : says) latecomers.push_back(card.start("latecomer", 1000, 32, folder));
  for (const pid_t latecomer : latecomers) CHECK(wait_for(latecomer) == 0);
  for (const Folder& folder : says) CHECK(read_file(folder / "out").empty());
  CHECK(card.end() == 0);
}

TEST_CASE("nobody gives what is in use: the latecomer is out of memory, at once and alive") {
  SharedCard card(2048);
  const Outcome outcome = card.run("takes_all", 0, 0);
  CHECK(outcome.status == 0);
  const unsigned long taken = std::strtoul(outcome.out.c_str(), nullptr, 10);
  INFO(outcome.err);
  CHECK(taken >= 1400);
  CHECK(taken <= 2048);
  CHECK(card.end() == 0);
  INFO(card.holder_says());
  CHECK(card.holder_says().empty());
}

TEST_CASE("without live pages first come takes all, the second is told, and neither dies") {
  const Environment settings{{"GPUPOOL_STATS_PAGES", ""}, {"GPUPOOL_POOL_SIZE", "80%"}};
  SharedCard card(1024, settings);
  const Outcome outcome = card.run("takes_all", 0, 0, settings);
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.err, "pool.size"));
  CHECK(contains(outcome.err, "does not fit"));
  CHECK(card.end() == 0);
}

TEST_CASE("fixed shares: each gets its own, and the last one what is left, with a warning") {
  const Environment share{{"GPUPOOL_POOL_SIZE", "1536MiB"}, {"GPUPOOL_POOL_MAX", "1536MiB"}};
  SharedCard card(1536, share);
  fits(card.run("latecomer", 1536, 32, share));
  Environment larger = share;
  larger["GPUPOOL_POOL_SIZE"] = larger["GPUPOOL_POOL_MAX"] = "3GiB";
  const Outcome outcome = card.run("latecomer", 1024, 32, larger);
  fits(outcome);
  CHECK(contains(outcome.err, "pool.size"));
  CHECK(contains(outcome.err, "does not fit"));
  CHECK(card.end() == 0);
}

TEST_CASE("a program sees no more of the card than its share") {
  CHECK(run_case("sees_its_cap", {{"GPUPOOL_POOL_MAX", "1GiB"}, {"CASE_CAP", "1024"}}).out.empty());
  CHECK(run_case("sees_its_cap", {{"GPUPOOL_POOL_SIZE", "512MiB"}, {"GPUPOOL_POOL_MAX", "1GiB"}, {"CASE_CAP", "1024"}})
            .out.empty());
}

TEST_CASE("a person asks: what is free goes back, what is to be kept stays") {
  SharedCard card(512);
  const auto page = [&] { return std::move(find_pages(card.pages()).pages.at(0)); };
  const auto reserved = [&] { return page().pools.at(0)->stats.reserved.current(); };
  const std::uint64_t before = reserved();
  const Answer answer = ask_for_memory(page().path, {.keep = std::uint64_t{2} << 30}, std::chrono::minutes(1));
  CHECK(answer.reply == Reply::kGiven);
  CHECK(answer.given == before - reserved());
  CHECK(reserved() >= std::uint64_t{2} << 30);
  CHECK(reserved() < (std::uint64_t{2} << 30) + (std::uint64_t{128} << 20));
  ask_for_memory(page().path, {}, std::chrono::minutes(1));
  CHECK(reserved() < std::uint64_t{700} << 20);
  CHECK(ask_for_memory(page().path, {.uuid = "GPU-another"}, std::chrono::minutes(1)).given == 0);
  CHECK(card.end() == 0);
}
