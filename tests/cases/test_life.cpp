// Processes that live unlike others, and tools that people put around a program.
#include <unistd.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/cases/passes.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

bool can_run(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The same command with and without the preload: how it ends, and what it says of the program's end.
void as_without(const std::vector<std::string>& words, const std::string& told = "") {
  const Outcome native = run_program(words, {}, Preload::kNone);
  if (!contains(native.out, told)) return;  // the tool cannot work on this machine
  const Outcome preloaded = run_program(words);
  INFO(words[0] << "\n" << preloaded.out << preloaded.err);
  CHECK(preloaded.status == native.status);
  CHECK(contains(preloaded.out, told));
}

std::vector<std::string> under_gdb(const std::vector<std::string>& program) {
  std::vector<std::string> words = {"/usr/bin/gdb", "-q",  "-nx", "-batch",   "-ex",   "break main",
                                    "-ex",          "run", "-ex", "continue", "--args"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

}  // namespace

TEST_CASE("handlers of faults stay, and are called for the program's own pages") {
  passes("handlers_of_faults", {}, Preload::kNone);
  passes("handlers_of_faults");
  passes("handlers_of_faults", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("a daemon gets a pool and a report, and nothing is written into its files") {
  const Folder folder;
  passes("daemon", {{"TEST_DATA", folder / "data"},
                    {"GPUPOOL_LOG_LEVEL", "trace"},
                    {"GPUPOOL_VERBOSE", "1"},
                    {"GPUPOOL_STATS_PATH", folder / "report"}});
  CHECK(read_file(folder / "data") == "data");
  passes("daemon", {{"TEST_DATA", folder / "data"}, {"GPUPOOL_LOG_PATH", folder / "log"}});
  CHECK(read_file(folder / "data") == "data");
  CHECK(contains(read_file(folder / "log"), "out of memory"));
  CHECK(json::parse(read_file(folder / "report"))["pools"].at(0)["frees"] == 1);
}

TEST_CASE("another malloc before or behind ours changes nothing", "[case-14]") {
#ifdef __SANITIZE_ADDRESS__
  return;  // its own has to be the first
#endif
  for (const char* place : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}) {
    const std::string other = std::string(place) + "/libjemalloc.so.2";
    if (!std::filesystem::exists(other)) continue;
    for (const std::string& list : {std::string(GPUPOOL_TEST_FRONT) + ":" + other, other + ":" + GPUPOOL_TEST_FRONT}) {
      const Folder folder;
      passes("plain_use", {{"LD_PRELOAD", list}, {"GPUPOOL_STATS_PATH", folder / "report"}});
      CHECK(json::parse(read_file(folder / "report"))["pools"].at(0)["requests"] == 1);
      passes("forks", {{"LD_PRELOAD", list}});
      CHECK(run_case("end_by_exit", {{"LD_PRELOAD", list}}).status == 3);
    }
  }
}

TEST_CASE("gdb follows a program as it does without the preload") {
  if (!can_run("/usr/bin/gdb")) return;
  as_without(under_gdb({GPUPOOL_TEST_PROGRAM}), "exited with code 02");  // no case is named: no CUDA
  as_without(under_gdb({GPUPOOL_TEST_PROGRAM, "end_by_exit"}), "exited with code 03");
}

TEST_CASE("valgrind finds nothing in a program without CUDA that it does not find without the preload") {
  const std::string valgrind = "/usr/bin/valgrind";
  if (!can_run(valgrind)) return;
  as_without({valgrind, "-q", "--error-exitcode=9", "/bin/true"});
  as_without({valgrind, "-q", "--error-exitcode=9", "/bin/bash", "-c", "(exit 3); echo told; exit 4"}, "told");
  as_without({valgrind, "-q", "--error-exitcode=9", GPUPOOL_TEST_PROGRAM}, "usage");
}
