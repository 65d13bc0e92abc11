// The live page: what is left of processes that were killed at any moment, and who has a page at all. More kills:
// GPUPOOL_TEST_KILLS=1000; another order: GPUPOOL_TEST_SEED.
#include <fcntl.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "live/identity.h"
#include "live/mailbox.h"
#include "live/reader.h"
#include "live/shared_segment.h"
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool;
using namespace gpupool::tests;
using nlohmann::json;

namespace {

unsigned long number_of(const char* variable, unsigned long otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoul(text, nullptr, 10) : otherwise;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The last call of a process that was killed may be counted by one side only.
bool agree(std::uint64_t counted, std::uint64_t expected) { return counted == expected || counted == expected + 1; }

struct Counts {
  std::uint64_t allocated = 0;
  std::uint64_t freed = 0;
};

Counts counts_in(const std::string& path) {
  const std::string text = read_file(path);
  Counts counts;
  if (text.size() == sizeof counts) std::memcpy(&counts, text.data(), sizeof counts);
  return counts;
}

void check_leftover(const PageCopy& copy, const Counts& counts, pid_t pid) {
  CHECK(copy.life == Life::kGone);
  CHECK(copy.page->identity.pid == std::uint64_t(pid));
  const json report = json::parse(report_json(copy.report()));
  CHECK(report["process"]["ended"] == "killed");
  REQUIRE(report["pools"].size() <= 1);
  if (report["pools"].empty()) {
    CHECK(counts.allocated == 0);
    return;
  }
  const json& pool = report["pools"][0];
  const auto requests = pool["requests"].get<std::uint64_t>();
  const auto frees = pool["frees"].get<std::uint64_t>();
  CHECK(agree(requests, counts.allocated));
  CHECK(agree(frees, counts.freed));
  const auto blocks = pool["blocks"].get<std::int64_t>();
  CHECK(std::abs(blocks - std::int64_t(requests - frees)) <= 1);
  CHECK(pool["hits"].get<std::uint64_t>() <= requests + 1);
  CHECK(pool["live"].get<std::uint64_t>() <= pool["reserved"].get<std::uint64_t>());
  std::uint64_t sized = 0;
  for (const json& bucket : pool["sizes"]) sized += bucket.at(1).get<std::uint64_t>();
  CHECK((agree(requests, sized)));
  for (std::size_t i = 1; i < report["curve"].size(); ++i) CHECK(report["curve"][i][0] >= report["curve"][i - 1][0]);
}

// Of the segment that a page in shared memory lies in; -1 for a page that is a file.
int segment_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::optional<PageLink> link = read_link(file);
  close(file);
  return link ? static_cast<int>(link->segment) : -1;
}

bool is_there(int segment) {
  shmid_ds info{};
  return segment >= 0 && shmctl(segment, IPC_STAT, &info) == 0;
}

}  // namespace

TEST_CASE("whatever the moment of the kill, the report is there and adds up, and no page stays") {
  const unsigned long seed = number_of("GPUPOOL_TEST_SEED", 1);
  const unsigned long kills = number_of("GPUPOOL_TEST_KILLS", 24);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  unsigned long recovered = 0;
  for (unsigned long i = 0; i < kills; ++i) {
    const Folder folder;
    const bool as_segment = i % 4 < 2;
    const Folder pages = as_segment ? Folder(kSharedMemory) : Folder();
    const pid_t child = start_program({GPUPOOL_TEST_PROGRAM, "churn"},
                                      {{"GPUPOOL_STATS_PAGES", pages / ""},
                                       {"GPUPOOL_STATS_INTERVAL", "10ms"},
                                       {"GPUPOOL_STATS_PATH", folder / "report"},
                                       {"CASE_COUNTS", folder / "counts"},
                                       {"CASE_SEED", std::to_string(random())}},
                                      Preload::kFront, folder);
    // Half of them while they start, half of them at work.
    const bool at_work = i % 2 == 0;
    const std::uint64_t enough = 1 + random() % 2000;
    if (at_work) wait_while_running(child, [&] { return counts_in(folder / "counts").allocated >= enough; });
    if (!at_work) usleep(static_cast<useconds_t>(random() % 100'000));
    kill(child, SIGKILL);
    CHECK(wait_for(child) == 128 + SIGKILL);
    const Counts counts = counts_in(folder / "counts");
    INFO("kill " << i << ", " << counts.allocated << " allocated, " << read_file(folder / "err"));
    CHECK_FALSE(std::filesystem::exists(folder / "report"));
    const PagesFound found = find_pages(pages / "");
    CHECK(found.problems.empty());
    if (counts.allocated > 0) REQUIRE(found.pages.size() == 1);
    for (const PageCopy& copy : found.pages) {
      const int segment = segment_of(copy.path);
      CHECK(is_there(segment) == as_segment);
      check_leftover(copy, counts, child);
      CHECK(claim_page(copy));
      CHECK_FALSE(claim_page(copy));
      CHECK_FALSE(is_there(segment));
      ++recovered;
    }
    // A page that was not complete yet tells nothing; it goes when it is old.
    if (counts.allocated > 0) CHECK(pages.files().empty());
    for (const std::string& name : pages.files()) shmctl(segment_of(pages / name), IPC_RMID, nullptr);
  }
  CHECK(recovered >= kills / 2);
  std::cout << "kills " << kills << ", reports recovered " << recovered
            << std::endl;  // children of fork would say it again
}

TEST_CASE("while a process runs its page says so, and nobody else can read it; at the exit it goes") {
  const Folder folder;
  const Folder pages;
  const pid_t child =
      start_program({GPUPOOL_TEST_PROGRAM, "churn"},
                    {{"GPUPOOL_STATS_PAGES", pages / ""}, {"CASE_COUNTS", folder / "counts"}, {"CASE_SEED", "1"}},
                    Preload::kFront, folder);
  wait_while_running(child, [&] { return counts_in(folder / "counts").allocated >= 100; });
  const PagesFound found = find_pages(pages / "");
  REQUIRE(found.pages.size() == 1);
  const PageCopy& copy = found.pages.front();
  CHECK(copy.life == Life::kRunning);
  CHECK(copy.page->identity.strategy.get() == "best_fit");
  CHECK_FALSE(claim_page(copy));
  struct stat info {};
  REQUIRE(stat(copy.path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  kill(child, SIGKILL);
  wait_for(child);
  CHECK(run_case("plain", {{"GPUPOOL_STATS_PAGES", pages / "other"}}).status == 0);
  const Folder orderly;
  CHECK(run_case("plain", {{"GPUPOOL_STATS_PAGES", orderly / ""}}).status == 0);
  CHECK(orderly.files().empty());
}

TEST_CASE("whoever cuts, fills or removes what lies in shared memory does not end the process whose page it is") {
  const Folder folder;
  const Folder pages(kSharedMemory);
  const pid_t child =
      start_program({GPUPOOL_TEST_PROGRAM, "churn"},
                    {{"GPUPOOL_STATS_PAGES", pages / ""}, {"CASE_COUNTS", folder / "counts"}, {"CASE_SEED", "1"}},
                    Preload::kFront, folder);
  const auto allocates = [&](std::uint64_t more) {
    const std::uint64_t before = counts_in(folder / "counts").allocated;
    wait_while_running(child, [&] { return counts_in(folder / "counts").allocated >= before + more; });
  };
  allocates(100);
  const PagesFound found = find_pages(pages / "");
  REQUIRE(found.pages.size() == 1);
  const std::string path = found.pages[0].path;
  const int segment = segment_of(path);
  REQUIRE(segment >= 0);
  for (int round = 0; round < 100; ++round) {
    std::filesystem::resize_file(path, std::uintmax_t(round % 5) * 10);
    if (round % 5 == 4) std::ofstream(path, std::ios::app) << std::string(5000, 'x');
    if (round == 50) shmctl(segment, IPC_RMID, nullptr);
    if (round == 75) unlink(path.c_str());
    if (round >= 75) std::ofstream(path) << "another";
    allocates(20);
    CHECK(find_pages(pages / "").pages.empty());
  }
  kill(child, SIGKILL);
  CHECK(wait_for(child) == 128 + SIGKILL);
  CHECK_FALSE(is_there(segment));
}

TEST_CASE("a link that names what is no page, or nothing, is refused or cleared away") {
  const Folder pages(kSharedMemory);
  const std::string path = pages / (page_name_start(geteuid()) + "x");
  const int other = shmget(IPC_PRIVATE, sizeof(Page), IPC_CREAT | 0600);
  REQUIRE(other >= 0);
  PageLink link;
  for (const std::int64_t number :
       {std::int64_t{other}, std::int64_t{-1}, std::int64_t{other} + (std::int64_t{1} << 32)}) {
    for (const std::uint64_t space : {std::uint64_t{0}, own_ipc_namespace()}) {
      link.segment = number;
      link.ipc_namespace = space;
      link.started_ns = 1;
      std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&link), sizeof link);
      std::filesystem::permissions(path, std::filesystem::perms(0600));
      const PagesFound found = find_pages(pages / "");
      CHECK(found.pages.empty());  // not yet: its writer may be about to say more
      CHECK(found.problems.empty() == (space != 0 && number < (std::int64_t{1} << 31)));
      CHECK(ask_for_memory(path, {}, std::chrono::milliseconds(1)).reply == Reply::kNoPage);
    }
  }
  CHECK(is_there(other));
  shmctl(other, IPC_RMID, nullptr);
}

TEST_CASE("a process without device memory has no page, and neither has a child that uses none") {
  const Folder pages;
  CHECK(run_case("nothing", {{"GPUPOOL_STATS_PAGES", pages / ""}}).status == 0);
  CHECK(run_case("fork_after", {{"GPUPOOL_STATS_PAGES", pages / ""}}).status == 0);
  CHECK(run_case("fork_among_threads", {{"GPUPOOL_STATS_PAGES", pages / ""}}).status == 0);
  CHECK(pages.files().empty());
}

TEST_CASE("_exit and exec leave a page; a child that lives on does not keep it running") {
  const Folder pages;
  CHECK(run_case("quick_exit", {{"GPUPOOL_STATS_PAGES", pages / ""}}).status == 0);
  REQUIRE(find_pages(pages / "").pages.size() == 1);
  CHECK(run_case("becomes_another", {{"GPUPOOL_STATS_PAGES", pages / ""}}).status == 0);
  REQUIRE(find_pages(pages / "").pages.size() == 3);
  const Folder of_parent;
  CHECK(run_case("fork_then_killed", {{"GPUPOOL_STATS_PAGES", of_parent / ""}}).status == 128 + SIGKILL);
  const PagesFound found = find_pages(of_parent / "");
  REQUIRE(found.pages.size() == 1);
  CHECK(found.pages.front().life == Life::kGone);
}

TEST_CASE("processes of the same number in two containers have a page each") {
  const Folder pages;
  for (unsigned count = 1; count <= 2; ++count) {
    const Outcome outcome =
        run_program({"/usr/bin/unshare", "--map-root-user", "--pid", "--fork", GPUPOOL_TEST_PROGRAM, "quick_exit"},
                    {{"GPUPOOL_STATS_PAGES", pages / ""}});
    if (contains(outcome.err, "unshare:")) return;  // this machine does not let us make one
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    const PagesFound found = find_pages(pages / "");
    CHECK(found.problems.empty());
    REQUIRE(found.pages.size() == count);
    for (const PageCopy& copy : found.pages) {
      CHECK(copy.page->identity.pid == 1);
      CHECK(copy.life == Life::kGone);
    }
  }
}

TEST_CASE("where there can be no page, one line says so and the program goes on") {
  for (const char* place : {"/nonexistent", "/proc", "/dev/null"}) {
    const Outcome outcome = run_case(
        "plain", {{"GPUPOOL_STATS_PAGES", place}, {"GPUPOOL_LOG_LEVEL", "info"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.err, "no live page in"));
  }
  const Outcome quiet = run_case("plain", {{"GPUPOOL_STATS_PAGES", ""}, {"GPUPOOL_STATS_SUMMARY", "off"}});
  CHECK(quiet.status == 0);
  CHECK(quiet.err.empty());
}
