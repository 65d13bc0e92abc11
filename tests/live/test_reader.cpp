// Nothing in a page is trusted: whatever the file holds, a reader says what it is or gives numbers, and ends.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "live/identity.h"
#include "live/reader.h"
#include "tests/catch.h"
#include "tests/live/page_file.h"

using namespace gpupool;
using namespace gpupool::tests;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

json report_of(const PageCopy& copy) { return json::parse(report_json(copy.report())); }

std::string problem_of(const std::string& path) {
  std::string problem;
  CHECK_FALSE(read_page(path, problem));
  return problem;
}

}  // namespace

TEST_CASE("a page is read as it was written") {
  PageFile file(2);
  file.pool(1).stats.live.set(300);
  file.pool(1).stats.live.set(200);
  file.pool(1).stats.requests.set(7);
  file.pool(1).sizes.add(4096);
  file.page().curve.points[0] = {.ms = 5, .reserved = 400, .live = 200};
  file.page().curve.count = 1;
  const PagesFound found = find_pages(file.folder());
  CHECK(found.problems.empty());
  REQUIRE(found.pages.size() == 1);
  CHECK(found.pages[0].life == Life::kRunning);  // by its number and start; no lock is held
  const json report = report_of(found.pages[0]);
  CHECK(report["process"]["executable"] == "/usr/bin/train");
  CHECK(report["process"]["ended"] == "running");
  CHECK(report["pools"].size() == 2);
  CHECK(report["pools"][1]["live"] == 200);
  CHECK(report["pools"][1]["live.peak"] == 300);
  CHECK(report["pools"][1]["requests"] == 7);
  CHECK(report["pools"][1]["sizes"] == json::parse("[[4096,1]]"));
  CHECK(report["curve"][0][1] == 400);
}

TEST_CASE("what is live now is read anew, without the rest") {
  PageFile file(2);
  std::string problem;
  const std::optional<PageCopy> copy = read_page(file.path(), problem);
  REQUIRE(copy);
  CHECK(live_now(*copy) == 0);
  file.pool(0).stats.live.set(100);
  file.pool(1).stats.live.set(30);
  file.page().passed.live = 7;
  CHECK(live_now(*copy) == 137);
  file.page().pool_count = 1;
  CHECK(live_now(*copy) == 107);
  file.page().pool_count = ~std::uint64_t{0};
  CHECK(live_now(*copy) == 137);
  unlink(file.path().c_str());
  CHECK_FALSE(live_now(*copy));
}

TEST_CASE("whose page it is: another number, start, boot or pid namespace is another process") {
  for (int what = 0; what < 3; ++what) {
    PageFile file;
    PageIdentity& who = file.page().identity;
    if (what == 0) who.start_ticks += 1;  // the number was given to a newer process
    if (what == 1) who.boot.set("another");
    if (what == 2) who.pid_namespace += 1;  // the same number in a container: only its lock would tell
    const PagesFound found = find_pages(file.folder());
    REQUIRE(found.pages.size() == 1);
    CHECK(found.pages[0].life == Life::kGone);
    CHECK(report_of(found.pages[0])["process"]["ended"] == "killed");
    CHECK(claim_page(found.pages[0]));
    CHECK(find_pages(file.folder()).pages.empty());
  }
}

TEST_CASE("rows that a writer does not have are 0, rows that we do not have are ignored, their order is the writer's") {
  PageFile file;
  auto* words = reinterpret_cast<std::uint64_t*>(&file.pool(0).stats);
  for (PageText<32>& name : file.page().stat_names) name.set("");
  file.page().stat_names[0].set("frees");
  file.page().stat_names[1].set("of_the_future");
  file.page().stat_names[2].set("live");
  file.page().stat_names[3].set("live.peak");
  for (unsigned i = 0; i < 4; ++i) words[i] = 10 * (i + 1);
  const json pool = report_of(find_pages(file.folder()).pages.at(0))["pools"][0];
  CHECK(pool["frees"] == 10);
  CHECK(pool["live"] == 30);
  CHECK(pool["live.peak"] == 40);
  CHECK(pool["requests"] == 0);
  CHECK_FALSE(pool.contains("of_the_future"));
}

TEST_CASE("a page of another version or layout is refused by name") {
  PageFile file;
  file.page().version = 9;
  CHECK(contains(problem_of(file.path()), "version 9; this command reads version 1"));
  file.page().version = kPageVersion;
  file.page().pool_bytes = 8;
  CHECK(contains(problem_of(file.path()), "layout"));
  file.page().magic = 1;
  CHECK(contains(problem_of(file.path()), "no page of gpupool"));
}

TEST_CASE("a page may be cut anywhere, and says so") {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{64}, std::uint64_t{sizeof(Page) / 2},
        std::uint64_t{sizeof(Page)}, page_file_bytes(1) - 1}) {
    PageFile file(2);
    std::filesystem::copy_file(file.path(), file.path() + "-cut");
    std::filesystem::permissions(file.path() + "-cut", std::filesystem::perms(0600));
    std::filesystem::resize_file(file.path() + "-cut", bytes);
    CAPTURE(bytes);
    std::string problem;
    const auto copy = read_page(file.path() + "-cut", problem);
    if (copy) {
      CHECK(report_of(*copy)["pools"].empty());
      CHECK(contains(copy->flaw, "is cut short: of its 2 pools the numbers of 2 are missing"));
    } else if (bytes >= sizeof(std::uint64_t)) {
      CHECK(contains(problem, "is cut short: " + std::to_string(bytes) + " bytes are left of "));
    } else if (bytes == 0) {
      CHECK(problem.empty());  // as its writer begins
    }
  }
  PageFile one(2);
  std::filesystem::resize_file(one.path(), page_file_bytes(1));
  const PagesFound found = find_pages(one.folder());
  REQUIRE(found.pages.size() == 1);
  CHECK(found.pages[0].pools.size() == 1);
  REQUIRE(found.problems.size() == 1);
  CHECK(contains(found.problems[0], one.path() + ": is cut short: of its 2 pools the numbers of 1 are missing"));
  one.page().pool_count = ~std::uint64_t{0};
  CHECK(contains(find_pages(one.folder()).problems.at(0), "is damaged: it counts more entries than a page has"));
}

TEST_CASE("any bytes at all are a page or a sentence") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    PageFile file(3);
    auto* bytes = reinterpret_cast<unsigned char*>(&file.page());
    const std::size_t size = page_file_bytes(3);
    for (int change = 0; change < 2000; ++change) {
      // Not the words by which a reader refuses at once.
      bytes[32 + random() % (size - 32)] = round % 3 == 0 ? 0xff : static_cast<unsigned char>(random());
    }
    std::string problem;
    const auto copy = read_page(file.path(), problem);
    REQUIRE(copy);
    const json report = report_of(*copy);
    CHECK(report["curve"].size() <= PageCurve::kMostPoints);
    CHECK(report["pools"].size() <= Page::kMostPools);
    static_cast<void>(report_text(copy->report()));
  }
}

TEST_CASE("a page that is swapped under its reader is neither mixed with the other nor taken for it") {
  PageFile file;
  file.pool(0).stats.requests.set(7);
  file.page().identity.start_ticks += 1;  // its process is gone
  PagesFound found = find_pages(file.folder());
  REQUIRE(found.pages.size() == 1);
  PageFile other;
  other.pool(0).stats.requests.set(8);
  REQUIRE(rename(other.path().c_str(), file.path().c_str()) == 0);
  CHECK(report_of(found.pages[0])["pools"][0]["requests"] == 7);
  CHECK_FALSE(claim_page(found.pages[0]));
  found = find_pages(file.folder());
  REQUIRE(found.pages.size() == 1);
  CHECK(report_of(found.pages[0])["pools"][0]["requests"] == 8);
}

TEST_CASE("links, folders, pipes and what others can read are no pages") {
  PageFile file;
  const std::string other = file.folder() + "/" + page_name_start(geteuid()) + "x";
  REQUIRE(symlink(file.path().c_str(), other.c_str()) == 0);
  CHECK_FALSE(problem_of(other).empty());
  unlink(other.c_str());
  REQUIRE(mkfifo(other.c_str(), 0600) == 0);
  CHECK(contains(problem_of(other), "not a file of this user alone"));
  unlink(other.c_str());
  REQUIRE(mkdir(other.c_str(), 0700) == 0);
  CHECK_FALSE(problem_of(other).empty());
  chmod(file.path().c_str(), 0644);
  CHECK(contains(problem_of(file.path()), "not a file of this user alone"));
  CHECK(find_pages("/nonexistent").pages.empty());
}
