// `gpupool report`: one process and many ranks, sums and spreads, and files that are no reports.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

std::string sample(int rank) { return source_path("tests/cli/golden/rank" + std::to_string(rank) + ".json"); }

std::string fault(const std::string& content) {
  const Folder folder;
  const Outcome outcome = command({"report", folder.file("r.json", content)});
  CHECK(outcome.status == 3);
  CHECK(outcome.out.empty());
  return outcome.err;
}

}  // namespace

TEST_CASE("one process: its rows, with what happened and nothing else") {
  const std::string text = command({"report", sample(0)}).out;
  CHECK(text.starts_with("process 100  /usr/bin/python3  rank 0 on node1  best_fit  60000 ms\n"));
  for (const char* line :
       {"\ndevice 0  Example GPU  GPU-0000\n", "\n  reserved.peak           8 GiB ",
        "\n  live.peak               4 GiB ", "\n  pool_ns                 1.2 ms ",
        "\n  coverage                99.9% ", "\n  next time: pool.size=5 GiB: peak need 4.2 GiB and 15% to spare\n",
        "\n  past the pool: cuArray3DCreate_v2, 3 calls, 953.6 MiB, 1 out of memory\n"}) {
    CAPTURE(line);
    CHECK(contains(text, line));
  }
  CHECK_FALSE(contains(text, "\n  trims "));
}

TEST_CASE("ranks in numbers: worst, spread, sum of each card") {
  const json all = json::parse(command({"report", sample(0), sample(1), sample(2), "--json"}).out);
  REQUIRE(all["pools"].size() == 3);
  CHECK(all["pools"][1]["rank"] == "1");
  CHECK(all["summary"]["live.peak"]["most"] == 6442450944.0);
  CHECK(all["summary"]["live.peak"]["spread"] == 2147483648.0);
  CHECK(all["summary"]["live.peak"]["worst_file"] == sample(1));
  REQUIRE(all["cards"].size() == 1);
  CHECK(all["cards"][0]["processes"] == 2);
  CHECK(all["cards"][0]["live.peak"] == 10737418240);
  CHECK_FALSE(all["pools"][2].contains("device"));  // a process that the driver served
}

TEST_CASE("a trace is a report, too: placed by a replay where it has no addresses") {
  const Folder folder;
  const std::string trace = folder.file("t.csv", "a,1,1048576,0\na,2,1000,0\nf,1\na,3,524288,0\n");
  const json pool = json::parse(command({"report", trace, "--json"}).out)["pools"][0];
  CHECK(pool["requests"] == 3);
  CHECK(pool["frees"] == 1);
  CHECK(pool["live.peak"] == 1048576 + 1024);
  CHECK(pool["reserved.peak"] >= 1048576 + 1024);
  CHECK(pool["external_fragmentation.peak"].is_null());
  CHECK(pool["note"] == "placed by a replay with pool.strategy=auto_growth: the numbers are the replay's");
  CHECK(contains(command({"report", trace}).out, "t.csv  auto_growth (replay)\n  placed by a replay with "));
  CHECK(contains(command({"report", folder.file("empty.csv", "# nothing\n")}).err, "holds no request"));
}

TEST_CASE("a file that is given twice counts once, and that is said") {
  const Folder folder;
  std::filesystem::create_symlink(sample(0), folder / "again.json");
  const Outcome one = command({"report", sample(0), folder / "again.json", sample(0)});
  CHECK(one.out == command({"report", sample(0)}).out);
  CHECK(contains(one.err, "again.json is given twice, and counts once\n"));
}

TEST_CASE("many ranks are told apart, and none is counted twice") {
  const Folder folder;
  std::vector<std::string> words{"report", "--json"};
  for (int rank = 0; rank < 200; ++rank)
    words.push_back(folder.file("rank" + std::to_string(rank) + ".json", read_text(sample(0))));
  words.push_back(words.back());
  const Outcome all = command(words);
  CHECK(nlohmann::json::parse(all.out).at("pools").size() == 200);
  CHECK(contains(all.err, "rank199.json is given twice, and counts once\n"));
  CHECK(contains(all.err, "rank0.json and " + (folder / "rank1.json") + " (and 198 more) are of one process, "));
  CHECK(contains(all.err, "which sums count 200 times\n"));
  CHECK(command({"report", sample(0), sample(1)}).err.empty());
}

TEST_CASE("programs get JSON also where nothing was left behind, and a folder that is none is told") {
  const Folder folder;
  const Outcome none = command({"report", "--leftover", "--json"}, {{"GPUPOOL_STATS_PAGES", folder / ""}});
  CHECK(none.status == 0);
  CHECK(nlohmann::json::parse(none.out).at("pools").empty());
  const Outcome nowhere = command({"report", "--leftover"}, {{"GPUPOOL_STATS_PAGES", "/nowhere"}});
  CHECK(contains(nowhere.err, "/nowhere: No such file or directory"));
}

TEST_CASE("--html writes a new page, and replaces nothing") {
  const Folder folder;
  const std::string page = folder / "page.html";
  CHECK(command({"report", sample(0), "--html", page}).status == 0);
  const std::string text = read_text(page);
  CHECK(text.starts_with("<!doctype html>"));
  CHECK_FALSE(contains(text, "{{data}}"));
  const Outcome again = command({"report", sample(1), "--html", page});
  CHECK(again.status == 5);
  CHECK(again.err == "gpupool: report: error: " + page + ": exists already and is not overwritten\n");
  CHECK(read_text(page) == text);
  CHECK(command({"report", sample(0), "--html", "/nonexistent/page.html"}).status == 5);
  const Outcome shown = command({"report", sample(0), "--html", "-"});
  CHECK(shown.status == 0);
  CHECK(shown.out == text);
}

TEST_CASE("what is no report is named") {
  CHECK(contains(fault(""), "r.json: is empty"));
  CHECK(contains(fault("\n{"), "r.json: line 2, column 2: the file ends too early"));
  CHECK(contains(fault("{\"gpupool_report\": 1, "), "r.json: line 1, column 23: the file ends too early"));
  CHECK(contains(fault("{\n \"a\": zz}"), "r.json: line 2, column 7: is no JSON"));
  CHECK(contains(fault("{\"a\": 1e999}"), "r.json: holds a number that is too large"));
  CHECK(contains(fault("  \n \n"), "r.json: holds nothing but blanks"));
  CHECK(contains(fault("[]"), "is no report of gpupool"));
  CHECK(contains(fault("{\"a\": 1}"), "is no report of gpupool"));
  CHECK(contains(fault(R"({"gpupool_report": 99, "process": {}})"),
                 "is a report of version 99; this command reads version 1"));
  CHECK(contains(fault(R"({"gpupool_report": 1})"), "process is missing"));
  CHECK(contains(fault(R"({"gpupool_report": 1, "process": 3})"), "process is no object"));
  CHECK(contains(fault(R"({"gpupool_report": 1, "process": {"pid": "x"}})"), "process.pid is not a count"));
  CHECK(contains(fault(R"({"gpupool_report": 1, "process": {}, "pools": [{}, {"live.peak": -1}]})"),
                 "pools[1].live.peak is not a count"));
  CHECK(contains(fault(std::string(100'000, '[')), "ends too early"));
  const Outcome missing = command({"report", "/nonexistent.json"});
  CHECK(missing.status == 3);
  CHECK(missing.err == "gpupool: report: error: /nonexistent.json: No such file or directory\n");
  CHECK(contains(command({"report", "/"}).err, "/: is a folder"));
}

#ifdef GPUPOOL_TEST_DRIVER
TEST_CASE("a process without a live page has a name in its report all the same") {
  const std::string strategy = GENERATE("best_fit", "passthrough");
  const Folder folder;
  const std::string run = folder / "run.json";
  command({"run", "--set", "stats.pages=", "--strategy", strategy, "--stats", run, "--", GPUPOOL_TEST_PROGRAM, "plain"},
          {{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}, {"RANK", "3"}});
  const json process = json::parse(read_text(run)).at("process");
  CHECK(process.at("pid") != 0);
  CHECK(process.at("executable") == GPUPOOL_TEST_PROGRAM);
  CHECK(process.at("host") != "");
  CHECK(process.at("rank") == "3");
  CHECK(process.at("strategy") == strategy);
}

TEST_CASE("a recorded trace tells what the run's own report tells, or that it was not recorded") {
  const auto [name, strategy] = GENERATE(table<std::string, std::string>({{"plain", "best_fit"},
                                                                          {"plain", "auto_growth"},
                                                                          {"plain", "passthrough"},
                                                                          {"out_of_memory", "best_fit"},
                                                                          {"out_of_memory", "passthrough"},
                                                                          {"user_vmm", "auto_growth"},
                                                                          {"user_vmm", "best_fit"}}));
  CAPTURE(name, strategy);
  const Folder folder;
  const std::string run = folder / "run.json";
  const std::string trace = folder / "run.gpt";
  command({"run", "--strategy", strategy, "--stats", run, "--trace", trace, "--", GPUPOOL_TEST_PROGRAM, name},
          {{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}});
  const json told = json::parse(command({"report", run, "--json"}).out)["pools"];
  const json recorded = json::parse(command({"report", trace, "--json"}).out)["pools"];
  REQUIRE(told.size() == recorded.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    for (const auto& [row, value] : recorded[i].items()) {
      CAPTURE(row);
      if (row != "file" && row != "advice" && !value.is_null()) CHECK(value == told[i][row]);
    }
    CHECK(recorded[i].size() == told[i].size());
  }
  const std::string text = command({"report", trace}).out;
  if (strategy == "passthrough") {
    CHECK(contains(text, "\n  passed_live.peak        "));
    CHECK(contains(text, "\n  past the pool: cuMemAlloc_v2, "));
    CHECK(contains(text, "\n  next time: pool.size="));
    CHECK_FALSE(contains(text, "waste"));
  } else {
    CHECK(contains(text, "\n  not recorded: needed, "));
    CHECK(contains(text, ", waste, hit_rate, external_fragmentation, advice_size\n"));
    CHECK_FALSE(contains(text, "\n  needed.peak"));
    CHECK_FALSE(contains(text, "\n  hit_rate"));
    CHECK(contains(text, "\n  next time: gpupool size finds pool.size"));
  }
}

TEST_CASE("ranks without a pool are compared by what the driver served") {
  const Folder folder;
  std::vector<std::string> words{"report"};
  for (const char* strategy : {"passthrough", "auto_growth"}) {
    words.push_back(folder / strategy);
    command({"run", "--strategy", strategy, "--stats", words.back(), "--", GPUPOOL_TEST_PROGRAM, "plain"},
            {{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}});
  }
  const std::string text = command(words).out;
  CHECK(contains(text, "passed_live.peak"));
  CHECK(contains(text, "0/0           -                -                -                41 MiB"));
  CHECK_FALSE(contains(text, "migrations"));
}
#endif
