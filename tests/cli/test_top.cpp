// `gpupool top`, `trim` and `report --leftover` on pages whose content is known.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/top/rows.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/live/page_file.h"

using namespace gpupool;
using namespace gpupool::tests;
using nlohmann::json;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A process with two pools, one of them idle.
void fill(PageFile& file) {
  file.page().identity.pid = 4242;
  file.page().identity.executable.set("/usr/bin/train \"now\"\n");
  Stats& stats = file.pool(0).stats;
  stats.reserved.set(1024 * kMiB);
  stats.needed.set(1000 * kMiB);
  stats.live.set(900 * kMiB);
  stats.live.set(700 * kMiB);
  stats.requests.set(7);
  stats.pool_ns.set(1'500'000);
  file.pool(1).stats.reserved.set(64 * kMiB);
  file.pool(0).limit = file.pool(1).limit = 4096 * kMiB;
  for (std::uint64_t i = 0; i < 8; ++i) file.page().curve.points[i] = {.ms = i, .reserved = 0, .live = i};
  file.page().curve.count = 8;
}

Variables in(const PageFile& file) { return {{"GPUPOOL_STATS_PAGES", file.folder()}}; }

}  // namespace

TEST_CASE("top: the table as it was") {
  PageFile file(2);
  fill(file);
  file.pool(0).stats.requests.set(
      0);  // the rate since the page's first millisecond differs by how long the machine runs
  file.lock();
  const Outcome outcome = command({"top", "--once"}, in(file));
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out == read_text(source_path("tests/cli/golden/top.txt")));
  CHECK(command({"top"}, in(file)).out == outcome.out);  // no terminal
}

TEST_CASE("top: in numbers, the report and the rates") {
  PageFile file(2);
  fill(file);
  file.lock();
  const json top = json::parse(command({"top", "--json"}, in(file)).out);
  REQUIRE(top["processes"].size() == 1);
  const json& process = top["processes"][0];
  CHECK(process["gpupool_report"] == 1);
  CHECK(process["process"]["pid"] == 4242);
  CHECK(process["pools"][0]["live.peak"] == 900 * kMiB);
  CHECK(process["pools"][0]["waste"].get<double>() > 0.09);
  CHECK(process["rates"].size() == 2);
}

TEST_CASE("top: nobody there, no folder, and what is no page") {
  const Folder folder;
  const Variables here{{"GPUPOOL_STATS_PAGES", folder / ""}};
  CHECK(command({"top"}, here).err ==
        "gpupool: no process of this user has a pool with a live page in " + (folder / "") + "\n");
  const Outcome nowhere = command({"top", "--openmetrics"}, {{"GPUPOOL_STATS_PAGES", "/nonexistent"}});
  CHECK(nowhere.status == 0);
  CHECK(nowhere.err == "gpupool: /nonexistent: No such file or directory\n");
  const std::string name = "gpupool-" + std::to_string(geteuid()) + "-x";
  std::filesystem::permissions(folder.file(name, "gpupool\ngarbage"), std::filesystem::perms(0600));
  CHECK(contains(command({"top"}, here).err, "is cut short: 15 bytes are left of "));
  CHECK(command({"top", "--interval", "soon"}, here).status == 2);
}

TEST_CASE("top: rates come from two looks") {
  PageCopy copy;
  copy.path = "/pages/one";
  copy.page = std::make_unique<Page>();
  copy.page->seen_ms.set(10'000);
  copy.pools.push_back(std::make_unique<PoolSlot>());
  copy.pools[0]->state.set(PoolSlot::kServing);
  copy.pools[0]->uuid.set("GPU-0");
  copy.pools[0]->stats.requests.set(100);
  std::vector<PageCopy> pages;
  pages.push_back(std::move(copy));
  const cli::TopRows first = cli::top_rows(pages, {}, 1000);
  CHECK(first.rows[0].requests_per_second == 10);
  pages[0].pools[0]->stats.requests.set(350);
  const cli::TopRows second = cli::top_rows(pages, first.look, 1500);
  CHECK(second.rows[0].requests_per_second == 500);
  pages[0].pools[0]->stats.requests.set(5);  // a page that was replaced
  CHECK(cli::top_rows(pages, second.look, 2000).rows[0].requests_per_second == 0);
}

TEST_CASE("a line of memory over time") {
  CHECK(cli::sparkline({}, 5, cli::Letters::ascii).empty());
  CHECK(cli::sparkline({0, 0}, 5, cli::Letters::ascii) == "  ");
  CHECK(cli::sparkline({0, 7, 14, 21, 28, 35, 42, 49}, 8, cli::Letters::ascii) == " .:-=+*#");
  CHECK(cli::sparkline({0, 7, 14, 21, 28, 35, 42, 49}, 2, cli::Letters::ascii) == "-#");
  CHECK(cli::sparkline({49}, 2, cli::Letters::unicode) == "█");
}

TEST_CASE("trim: who cannot be asked, and why") {
  const Folder folder;
  PageFile file;
  CHECK(contains(command({"trim", "1"}, {{"GPUPOOL_STATS_PAGES", folder / ""}}).err, "no process \"1\" of this user"));
  CHECK(command({"trim"}, in(file)).status == 2);
  CHECK(contains(command({"trim", "1", "--to", "much"}, in(file)).err, "--to"));
  file.page().identity.pid = 4242;
  CHECK(contains(command({"trim", "4242"}, in(file)).err, "is gone; gpupool report --leftover shows it"));
  file.lock();
  const Outcome nobody = command({"trim", "4242"}, in(file));
  CHECK(nobody.status == 1);
  CHECK(contains(nobody.out, "process 4242 answers nobody"));
  CHECK(contains(command({"trim", "4242", "--json"}, in(file)).out, "\"answered\": false"));
}

TEST_CASE("trim: equal numbers of containers are not mixed up") {
  PageFile file;
  file.page().identity.pid_namespace += 1;
  const std::string other = file.path() + "-1";
  std::filesystem::copy_file(file.path(), other);
  std::filesystem::permissions(other, std::filesystem::perms(0600));
  file.lock();  // the copy has none: that process is gone, and the other one is asked
  CHECK(contains(command({"trim", std::to_string(getpid())}, in(file)).out, "answers nobody"));
}

TEST_CASE("report: what a killed process has left is shown once") {
  PageFile file(1);
  fill(file);
  const Outcome shown = command({"report", "--leftover"}, in(file));
  CHECK(shown.status == 0);
  CHECK(contains(shown.out, "process 4242  "));
  CHECK(contains(shown.out, "killed\n"));
  CHECK(contains(shown.out, "live.peak               900 MiB"));
  CHECK_FALSE(std::filesystem::exists(file.path()));
  CHECK(contains(command({"report", "--leftover"}, in(file)).err, "no process has left a page behind"));
}

TEST_CASE("report: a page is a file like others, and stays") {
  PageFile file(1);
  fill(file);
  CHECK(contains(command({"report", file.path()}).out, "killed\n"));
  file.lock();
  const Outcome running = command({"report", file.path(), "--json"});
  CHECK(json::parse(running.out)["pools"][0]["live.peak"] == 900 * kMiB);
  CHECK(std::filesystem::exists(file.path()));
  std::filesystem::permissions(file.path(), std::filesystem::perms(0644));
  CHECK(contains(command({"report", file.path()}).err, "is not a file of this user alone"));
}

TEST_CASE("report and top: a page that was cut short") {
  PageFile file(2);
  fill(file);
  file.page().seen_ms.set(1234);
  std::filesystem::resize_file(file.path(), page_file_bytes(1));
  const std::string said = ": is cut short: of its 2 pools the numbers of 1 are missing\n";
  CHECK(contains(command({"report", file.path()}).err, said));
  CHECK(contains(command({"report", file.path()}).out, "  last seen at 1234 ms  killed\n"));
  CHECK(contains(command({"top"}, in(file)).err, said));
  std::filesystem::resize_file(file.path(), 5000);
  const Outcome refused = command({"report", file.path()});
  CHECK(refused.status == 3);
  CHECK(contains(refused.err, "is cut short: 5000 bytes are left of "));
  CHECK(contains(command({"top"}, in(file)).err, "is cut short: 5000 bytes are left of "));
}

TEST_CASE("report: it can be kept as the file that the process would have written") {
  PageFile file(1);
  fill(file);
  const Folder folder;
  CHECK(command({"report", "--leftover", "--write", folder / "none"}, in(file)).status == 5);
  CHECK(std::filesystem::exists(file.path()));  // not shown, not removed
  CHECK(command({"report", "--leftover", "--write", folder / ""}, in(file)).status == 0);
  const json report = json::parse(read_text(folder / "gpupool-4242.json"));
  CHECK(report["process"]["ended"] == "killed");
  CHECK(report["pools"][0]["requests"] == 7);
  CHECK(contains(command({"report", folder / "gpupool-4242.json"}).out, "killed\n"));
  CHECK(command({"report", "--write", folder / ""}).status == 2);
  CHECK(command({"report"}).status == 2);
}
