// What a process says at its end, and that it says nothing where it should not.
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the table says what the pool did and advises a size") {
  const Outcome outcome = run_case("plain");
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.err, "live.peak"));
  CHECK(contains(outcome.err, "pool.size="));
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);) CHECK(line.rfind("gpupool:", 0) == 0);
}

TEST_CASE("the file has every counter, private to its owner, complete, under its own name") {
  const Folder folder;
  const Outcome outcome = run_case("plain", {{"GPUPOOL_STATS_PATH", folder / "report.%r.json"}, {"RANK", "3"}});
  REQUIRE(folder.files() == std::vector<std::string>{"report.3.json"});
  const json report = json::parse(read_file(folder / "report.3.json"));
  CHECK(report["gpupool_report"] == 1);
  CHECK(report["process"]["rank"] == "3");
  CHECK(report["process"]["coverage"] == 1.0);
  const json& pool = report["pools"].at(0);
  CHECK(pool["requests"] == 7);
  CHECK(pool["frees"] == 7);
  CHECK(pool["live"] == 0);
  CHECK(pool["requested.peak"] == 1 + 511 + 512 + 513 + 4097 + (1 << 20) + (40 << 20));
  std::uint64_t counted = 0;
  for (const json& bucket : pool["sizes"]) counted += bucket.at(1).get<std::uint64_t>();
  CHECK(counted == 7);
  CHECK_FALSE(report["curve"].empty());
  struct stat info {};
  REQUIRE(stat((folder / "report.3.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a folder for a report or a trace gets a file of that process, which is said") {
  const Folder folder;
  const Outcome outcome = run_case("plain", {{"GPUPOOL_STATS_PATH", folder / ""}, {"GPUPOOL_TRACE_PATH", folder / ""}});
  CHECK(outcome.status == 0);
  const std::vector<std::string> files = folder.files();
  REQUIRE(files.size() == 2);
  CHECK(files[0].starts_with("gpupool-"));
  CHECK(files[0].ends_with(".gpt"));
  CHECK(files[1] == files[0].substr(0, files[0].size() - 4) + ".json");
  CHECK(json::parse(read_file(folder / files[1]))["pools"].at(0)["requests"] == 7);
  CHECK(contains(outcome.err, "is a folder; what was to go there goes to "));
  for (const std::string& file : files) CHECK(contains(outcome.err, file));
}

TEST_CASE("a name that is taken, even by a dangling link, gets a suffix and is left alone") {
  const Folder folder;
  REQUIRE(symlink("/nonexistent", (folder / "report").c_str()) == 0);
  run_case("plain", {{"GPUPOOL_STATS_PATH", folder / "report"}});
  const Outcome second = run_case("plain", {{"GPUPOOL_STATS_PATH", folder / "report"}});
  CHECK(folder.files() == std::vector<std::string>{"report", "report.1", "report.2"});
  CHECK(json::parse(read_file(folder / "report.1"))["gpupool_report"] == 1);
  CHECK(contains(second.err, "report is taken; the report is in " + (folder / "report.2")));
}

TEST_CASE("a trace's taken name gets a suffix, and that is said") {
  const Folder folder;
  CHECK_FALSE(contains(run_case("plain", {{"GPUPOOL_TRACE_PATH", folder / "t"}}).err, "taken"));
  const Outcome second = run_case("plain", {{"GPUPOOL_TRACE_PATH", folder / "t"}});
  CHECK(contains(second.err, "t is taken; the trace is in " + (folder / "t.1")));
  CHECK(folder.files() == std::vector<std::string>{"t", "t.1"});
}

TEST_CASE("a device takes a report and a trace as they are, and nothing is written into a pipe") {
  const Outcome null = run_case("plain", {{"GPUPOOL_STATS_PATH", "/dev/null"}, {"GPUPOOL_TRACE_PATH", "/dev/null"}});
  CHECK(null.status == 0);
  CHECK_FALSE(contains(null.err, "/dev/null"));
  CHECK(access("/dev/null.1", F_OK) != 0);
  const Outcome full = run_case("plain", {{"GPUPOOL_STATS_PATH", "/dev/full"}, {"GPUPOOL_TRACE_PATH", "/dev/full"}});
  CHECK(full.status == 0);
  CHECK(contains(full.err, "cannot write the report /dev/full: No space left on device"));
  CHECK(contains(full.err, "cannot write the trace: /dev/full: No space left on device"));
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const Outcome pipe =
      run_case("plain", {{"GPUPOOL_STATS_PATH", folder / "pipe"}, {"GPUPOOL_TRACE_PATH", folder / "pipe"}});
  CHECK(pipe.status == 0);
  CHECK(contains(pipe.err, "cannot write the report " + (folder / "pipe")));
  CHECK(contains(pipe.err, "cannot write the trace: " + (folder / "pipe")));
  CHECK(folder.files() == std::vector<std::string>{"pipe"});
}

TEST_CASE("a report that cannot be written and a log that cannot be opened say why") {
  const Outcome report = run_case("plain", {{"GPUPOOL_STATS_PATH", "/nonexistent/r"}});
  CHECK(contains(report.err, "cannot write the report /nonexistent/r: No such file or directory"));
  const Outcome log = run_case("plain", {{"GPUPOOL_LOG_PATH", "/nonexistent/l"}, {"GPUPOOL_POOL_SIZE", "1024TiB"}});
  CHECK(contains(log.err, "log.path: /nonexistent/l: No such file or directory; using stderr\n"));
  CHECK(contains(log.err, "pool.size: "));
}

TEST_CASE("children that use no device memory write nothing; those that do write their own") {
  const Folder folder;
  run_case("fork_after", {{"GPUPOOL_STATS_PATH", folder / "%p"}});
  CHECK(folder.files().size() == 1);
  const Folder other;
  run_case("fork_before", {{"GPUPOOL_STATS_PATH", other / "%p"}});
  CHECK(other.files().size() == 1);
}

TEST_CASE("a process that uses no device memory says nothing") {
  const Outcome outcome = run_case("nothing");
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("the summary can be switched off") {
  CHECK(run_case("plain", {{"GPUPOOL_STATS_SUMMARY", "off"}}).err.empty());
}

TEST_CASE("strategy passthrough counts what the driver serves and advises from it") {
  const Folder folder;
  const Outcome outcome =
      run_case("plain", {{"GPUPOOL_POOL_STRATEGY", "passthrough"}, {"GPUPOOL_STATS_PATH", folder / "report"}});
  CHECK(outcome.status == 0);
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["process"]["coverage"] == 0.0);
  CHECK(report["process"]["passed_live.peak"] == 1 + 511 + 512 + 513 + 4097 + (1 << 20) + (40 << 20));
  CHECK(report["process"]["advice_size"] == 64 << 20);
  CHECK(report["past_the_pool"].at(0)["api"] == "cuMemAlloc_v2");
  CHECK(report["past_the_pool"].at(0)["calls"] == 7);
}

TEST_CASE("strategy off and excluded programs are left to the driver") {
  for (const Environment& settings :
       {Environment{{"GPUPOOL_POOL_STRATEGY", "off"}}, Environment{{"GPUPOOL_PROCESSES_EXCLUDE", "preload_core_*"}}}) {
    const Folder folder;
    Environment all = settings;
    all["GPUPOOL_STATS_PATH"] = folder / "report";
    const Outcome outcome = run_case("plain", all);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(folder.files().empty());
  }
}

TEST_CASE("GPUPOOL_VERBOSE says once who this is and which pool there is") {
  const Environment verbose{
      {"GPUPOOL_VERBOSE", "1"}, {"GPUPOOL_STATS_SUMMARY", "off"}, {"GPUPOOL_POOL_SIZE", "256MiB"}};
  const Outcome outcome = run_case("two_devices", verbose);
  CHECK(outcome.err.starts_with("gpupool: version "));
  CHECK(contains(outcome.err, ": pool of 256 MiB, at most 3.5 GiB, on device 1 (Simulated GPU), best_fit, vmm\n"));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  Environment excluded = verbose;
  excluded["GPUPOOL_PROCESSES_EXCLUDE"] = "preload_core_*";
  CHECK(contains(run_case("plain", excluded).err, "no pool for "));
}

TEST_CASE("large requests can be sent to the driver") {
  const Folder folder;
  run_case("plain", {{"GPUPOOL_POOL_DIRECT_ABOVE", "16MiB"}, {"GPUPOOL_STATS_PATH", folder / "report"}});
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["pools"].at(0)["requests"] == 6);
  CHECK(report["past_the_pool"].at(0)["bytes"] == 40 << 20);
}

TEST_CASE("out of memory is said once, with the verdict and the setting to change") {
  const Outcome outcome = run_case("out_of_memory", {{"GPUPOOL_STATS_SUMMARY", "off"}});
  CHECK(contains(outcome.err, "out of memory on device 0 (capacity)"));
  CHECK(contains(outcome.err, "largest hole"));
  CHECK(contains(outcome.err, "pool.overflow=host"));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("the pool gives memory back for what it cannot serve") {
  const Folder folder;
  const Outcome outcome = run_case("user_vmm", {{"GPUPOOL_STATS_PATH", folder / "report"}});
  CHECK(outcome.status == 0);
  const json past = json::parse(read_file(folder / "report"))["past_the_pool"];
  REQUIRE(past.size() == 1);
  CHECK(past.at(0)["api"] == "cuMemCreate");
  CHECK(past.at(0)["rescued"] == 1);
}

TEST_CASE("a bad setting is said once and the program runs") {
  const Outcome outcome = run_case("plain", {{"GPUPOOL_POOL_SIZE", "lots"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.err, "GPUPOOL_POOL_SIZE"));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("overflow is used where the card is full, said once, and reported") {
  const Environment settings = {{"GPUPOOL_POOL_OVERFLOW", "host"}, {"GPUPOOL_POOL_OVERFLOW_MAX", "512MiB"}};
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Folder folder;
    Environment with = settings;
    with["GPUPOOL_POOL_STRATEGY"] = strategy;
    with["GPUPOOL_STATS_PATH"] = folder / "report";
    const Outcome outcome = run_case("overflow", with);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    const std::string said = "is full: from now on memory of the host stands in (pool.overflow=host), at most 512 MiB";
    CHECK(contains(outcome.err, said));
    CHECK(outcome.err.find(said) == outcome.err.rfind(said));
    CHECK(contains(outcome.err, "overflow.peak"));
    const json pool = json::parse(read_file(folder / "report"))["pools"].at(0);
    CHECK(pool["overflow.peak"] == 5 * 96 << 20);
    CHECK(pool["overflows"] == 5);
    CHECK(pool["overflow_live"] == 0);
    // The last request alone was refused; the ones before were served, from the host.
    CHECK(pool["oom_capacity"].get<int>() + pool["oom_fragmentation"].get<int>() == 1);
  }
}

TEST_CASE("overflow is off by default; where the driver has no such memory a line says so and the program goes on") {
  CHECK(run_case("overflow").status != 0);
  const Environment asked = {{"GPUPOOL_POOL_OVERFLOW", "host"}};
  Environment without = asked;
  // The card's own unit is asked for first.
  without["GPUPOOL_SIM_FAULT"] = "cuMemGetAllocationGranularity:2-3=801";
  CHECK(contains(run_case("plain", without).err, "the driver maps no host memory beside the card's"));
  Environment slabs = asked;
  slabs["GPUPOOL_POOL_BACKING"] = "arena";
  CHECK(contains(run_case("plain", slabs).err, "only pool.backing=vmm can do so"));
  // Asked for on its node, the host has none; asked for anywhere, it has.
  CHECK(run_case("plain", without).status == 0);
}
