// How programs find the driver, and what a process without CUDA sees of the preload.
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;
using nlohmann::json;

TEST_CASE("only exact names on the right handle are answered", "[case-6]") {
  const Outcome outcome = run_case("names");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
}

TEST_CASE("shared, static and opened runtime and the driver alone are served, and counted once", "[case-7]") {
  for (const char* program : {GPUPOOL_TEST_WAYS "/case_way_shared", GPUPOOL_TEST_WAYS "/case_way_static",
                              GPUPOOL_TEST_WAYS "/case_way_opened", GPUPOOL_TEST_WAYS "/case_way_driver"}) {
    const Folder folder;
    const Outcome outcome = run_program({program}, {{"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(program << "\n" << outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    const json report = json::parse(read_file(folder / "report"));
    const json& pool = report["pools"].at(0);
    CHECK(pool["requests"] == 4);
    CHECK(pool["frees"] == 4);
    CHECK(pool["requested.peak"] == 1000 + 2000 + 3000 + 4000);
    CHECK(report["process"]["coverage"] == 1.0);
  }
}

TEST_CASE("programs without CUDA are as they are without the preload", "[case-9]") {
  const std::vector<std::string> programs[] = {{"/bin/true"},
                                               {"/bin/false"},
                                               {"/bin/sh", "-c", "echo out; echo err >&2; exit 7"},
                                               {"/bin/bash", "-c", "(exit 3); echo $?; [ -n \"$BASH\" ]"},
                                               {"/usr/bin/env", "printf", "%s", "text"}};
  for (const std::vector<std::string>& words : programs) {
    const Outcome native = run_program(words, {}, Preload::kNone);
    const Outcome preloaded = run_program(words);
    CHECK(preloaded.status == native.status);
    CHECK(preloaded.out == native.out);
    CHECK(preloaded.err == native.err);
  }
}

TEST_CASE("a second preload before or behind ours changes nothing", "[case-14]") {
  const std::string other = "/usr/libexec/coreutils/libstdbuf.so";
  for (const std::string& list : {std::string(GPUPOOL_TEST_FRONT) + ":" + other, other + ":" + GPUPOOL_TEST_FRONT,
                                  other + " " + GPUPOOL_TEST_FRONT}) {
    const Folder folder;
    const Outcome outcome =
        run_case("plain_use", {{"LD_PRELOAD", list}, {"_STDBUF_O", "L"}, {"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(list << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == list + "\n");  // LD_PRELOAD as it was
    CHECK(json::parse(read_file(folder / "report"))["pools"].at(0)["requests"] == 1);
  }
}
