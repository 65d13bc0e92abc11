// `gpupool doctor`: each finding on what causes it, and what it makes of files that lie about themselves.
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/doctor/finding.h"
#include "cli/doctor/probe.h"
#include "cli/elf.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;
using namespace gpupool::cli;
using nlohmann::json;

namespace {

Finding program(const std::string& path) {
  Findings findings;
  check_program(findings, path);
  REQUIRE(findings.size() == 1);
  return findings.front();
}

std::string executable(const Folder& folder, const std::string& name, std::string_view content) {
  const std::string path = folder.file(name, content);
  chmod(path.c_str(), 0755);
  return path;
}

json doctor(const Variables& variables, std::vector<std::string> words = {}) {
  words.insert(words.begin(), {"doctor", "--json"});
  return json::parse(command(words, variables).out);
}

bool has(const json& shown, const std::string& level, const std::string& what, const std::string& part) {
  for (const json& finding : shown["findings"]) {
    if (finding["level"] == level && finding["what"] == what && contains(finding["says"].get<std::string>(), part))
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("programs: dynamic, static, foreign, privileged, scripts") {
  const Folder folder;
  std::string self = read_text(GPUPOOL_TEST_COMMAND);
  CHECK(program(GPUPOOL_TEST_COMMAND).level == Level::ok);
  CHECK(program("sh").level == Level::ok);
  CHECK(program("no-such-program").level == Level::broken);
  CHECK(contains(program(executable(folder, "script", "#!/usr/bin/env -S sh -e\n")).says, "script, run by /"));
  CHECK(contains(program(executable(folder, "lost", "#!/no/such/interpreter\n")).says, "interpreter"));
  CHECK(program(executable(folder, "text", "hello")).level == Level::warning);

  std::string foreign = self.substr(0, 4096);
  foreign[18] = '\x03';  // e_machine
  CHECK(contains(program(executable(folder, "foreign", foreign)).says, "another processor"));

  const std::string privileged = executable(folder, "privileged", self);
  chmod(privileged.c_str(), 04755);
  CHECK(contains(program(privileged).says, "more rights"));
}

TEST_CASE("a damaged executable gives fewer facts, never a crash") {
  const Folder folder;
  const std::string whole = read_text(GPUPOOL_TEST_FRONT);
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::string damaged = whole;
    for (int i = 0; i < 20; ++i) damaged[4 + random() % 1000] = static_cast<char>(random());
    if (seed % 3 == 0) damaged.resize(random() % damaged.size());
    elf_facts(folder.file("damaged", damaged));
    script_interpreter(folder.file("damaged", "#!" + damaged.substr(0, 64)));
  }
  SUCCEED();
}

TEST_CASE("libraries that cannot be loaded are told with the loader's words") {
  const Folder folder;
  CHECK(probe_library(GPUPOOL_TEST_FRONT, nullptr).loaded);
  const Probe bad = probe_library(folder.file("bad.so", "no library"), nullptr);
  CHECK_FALSE(bad.loaded);
  CHECK(contains(bad.says, "bad.so"));
}

TEST_CASE("without a driver it says so, and the rest is looked at all the same") {
  const json shown = doctor({});
  CHECK(shown["status"] == "broken");
  CHECK(has(shown, "broken", "driver", "libcuda.so.1"));
  CHECK(has(shown, "ok", "front", GPUPOOL_TEST_FRONT));
  CHECK(has(shown, "ok", "core", "libgpupool_core.so"));
  CHECK(has(shown, "ok", "child", "a child process gets the preload"));
  CHECK(has(shown, "ok", "preload", "not set"));
  CHECK(has(shown, "ok", "configuration", "valid"));
  CHECK(command({"doctor"}).status == 4);
}

TEST_CASE("what needs a temporary folder is left out where there is none, and the rest is looked at") {
  const json shown = doctor({{"TMPDIR", "/nowhere"}});
  CHECK(has(shown, "warning", "frameworks", "not looked at: a temporary folder is needed (TMPDIR): /nowhere/"));
  CHECK(has(shown, "warning", "child", "not looked at"));
  CHECK(has(shown, "ok", "front", GPUPOOL_TEST_FRONT));
  CHECK(has(shown, "ok", "configuration", "valid"));
}

TEST_CASE("the shell's own settings are judged") {
  CHECK(has(doctor({{"LD_PRELOAD", GPUPOOL_TEST_FRONT}}), "ok", "preload", "is in effect"));
  CHECK(has(doctor({{"LD_PRELOAD", "/nowhere/libgpupool.so"}}), "broken", "preload", "has not loaded it"));
  CHECK(has(doctor({{"LD_PRELOAD", "/nowhere/x.so"}}), "warning", "preload", "/nowhere/x.so, which is not there"));
  CHECK(has(doctor({{"GPUPOOL_DISABLE", "1"}}), "broken", "preload", "switches gpupool off"));
  CHECK(has(doctor({{"GPUPOOL_POOL_SIEZ", "1GiB"}}), "warning", "configuration", "did you mean GPUPOOL_POOL_SIZE?"));
  CHECK(has(doctor({{"PYTORCH_ALLOC_CONF", "expandable_segments:True"}}), "warning", "switches",
            "keeps a cache of its own"));
  CHECK(has(doctor({{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}), "ok", "switches", "TensorFlow"));
  CHECK(has(doctor({{"GPUPOOL_PROCESSES_EXCLUDE", "sh*,dash"}}, {"--", "sh"}), "warning", "program", "is excluded"));
}

TEST_CASE("frameworks are looked for in the Python that runs the program, and told of their own switches alone") {
  const Folder folder;
  executable(folder, "python3", "#!/bin/sh\necho torch 2.11.0\necho cupy 13.6.0\n");
  executable(folder, "python9", "#!/bin/sh\necho jax 0.9\n");
  executable(folder, "silent", "#!/bin/sh\n");
  executable(folder, "train", "#!/usr/bin/env python9\n");
  const Variables variables{{"PATH", folder / "" + ":/usr/bin:/bin"}};
  const json by_default = doctor(variables);
  CHECK(has(by_default, "note", "frameworks", "/python3 has torch 2.11.0, cupy 13.6.0"));
  CHECK(has(by_default, "note", "switches", "PyTorch keeps a cache of its own"));
  CHECK(has(by_default, "note", "switches", "CuPy keeps a cache of its own"));
  CHECK_FALSE(has(by_default, "note", "switches", "JAX"));
  CHECK_FALSE(has(by_default, "note", "switches", "PyTorch before"));
  CHECK(has(doctor(variables, {"--", "train"}), "note", "switches", "JAX keeps a cache of its own"));
  Variables set = variables;
  set["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync";
  CHECK(has(doctor(set), "ok", "switches", "PyTorch before 2.9 uses the pool"));
  CHECK_FALSE(has(doctor(set), "note", "switches", "PyTorch"));
  CHECK(has(doctor({{"PATH", "/nowhere"}}), "note", "frameworks", "there is no python3 here"));
}

TEST_CASE("the least that a control group or one above it allows") {
  const Folder folder;
  const auto limit = [&](const std::string& groups) { return control_group_limit(groups, folder / ""); };
  std::filesystem::create_directories(folder / "user/job");
  std::filesystem::create_directories(folder / "memory/old");
  CHECK(limit("0::/user/job\n") == 0);
  folder.file("user/job/memory.max", "max\n");
  folder.file("user/memory.max", "2147483648\n");
  CHECK(limit("0::/user/job\n") == 2147483648);
  folder.file("user/job/memory.max", "1048576\n");
  CHECK(limit("0::/user/job\n") == 1048576);
  CHECK(limit("0::/elsewhere\n") == 0);
  folder.file("memory.max", "4096\n");  // as a container sees its own group
  CHECK(limit("0::/elsewhere\n") == 4096);
  folder.file("memory/old/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(limit("5:cpu,memory:/old\n") == 0);
  folder.file("memory/old/memory.limit_in_bytes", "8192\n");
  CHECK(limit("7:cpuset:/\n5:cpu,memory:/old\n") == 8192);
  CHECK(limit("") == 0);
  CHECK(limit("no group\n:\n") == 0);
}

#ifdef GPUPOOL_TEST_DRIVER
TEST_CASE("with a driver all is well") {
  const Outcome shown = command({"doctor"}, {{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}});
  CAPTURE(shown.out);
  CHECK(shown.status == 0);
  CHECK(contains(shown.out, "ok       driver         CUDA "));
}

TEST_CASE("a run proves that allocations arrive") {
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  CHECK(has(doctor(variables, {"--", GPUPOOL_TEST_PROGRAM, "plain"}), "ok", "run", "its allocations arrive: "));
  CHECK_FALSE(has(doctor(variables, {"--", GPUPOOL_TEST_PROGRAM, "plain"}), "note", "run", "cudaFree does not wait"));
  CHECK(has(doctor(variables, {"--", GPUPOOL_TEST_PROGRAM, "free_waits"}), "note", "run", "cudaFree does not wait"));
  Variables off = variables;
  off["GPUPOOL_POOL_STRATEGY"] = "off";
  const json left = doctor(off, {"--", GPUPOOL_TEST_PROGRAM, "plain"});
  CHECK(has(left, "warning", "configuration", "pool.strategy=off: no program gets a pool"));
  CHECK(has(left, "ok", "run", "its allocations arrive: "));
  CHECK(has(left, "warning", "run", "pool.strategy=off: it was counted here, and will get no pool"));
  CHECK_FALSE(has(left, "warning", "run", "no allocation of it arrived"));
  Variables excluded = variables;
  excluded["GPUPOOL_PROCESSES_EXCLUDE"] = "preload_core_*";
  const json kept_out = doctor(excluded, {"--", "sh", "-c", GPUPOOL_TEST_PROGRAM " plain; true"});
  CHECK(has(kept_out, "ok", "run", "its allocations arrive: "));
  CHECK(has(kept_out, "warning", "run", "preload_core_program is excluded by processes.include or processes.exclude"));
  CHECK(has(doctor(variables, {"--", "true"}), "warning", "run", "no allocation of it arrived (ended with status 0)"));
}

#ifndef __SANITIZE_ADDRESS__  // which ends a program that opens a library with RTLD_DEEPBIND
TEST_CASE("who has the driver, and whose calls do not arrive") {
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  const json past = doctor(variables, {"--", GPUPOOL_TEST_DEEPBIND, GPUPOOL_TEST_PLUGIN});
  CHECK(has(past, "warning", "run", "no allocation of it arrived (ended with status 0)"));
  CHECK(has(past, "warning", "run", "cli_deepbind, has the driver, and none of its calls came through the preload"));
  const json cleared =
      doctor(variables, {"--", "sh", "-c", "unset LD_PRELOAD; exec " GPUPOOL_TEST_DEEPBIND " " GPUPOOL_TEST_PLUGIN});
  CHECK(has(cleared, "warning", "run", "cli_deepbind, has the driver and not the preload"));
}
#endif

TEST_CASE("the room on a card, and who else is there") {
  const std::string libraries = std::string{GPUPOOL_TEST_DRIVER} + ":" + GPUPOOL_TEST_NVML;
  const json tight = doctor({{"LD_LIBRARY_PATH", libraries}});
  CHECK(has(tight, "ok", "card 0", "Stand-in card (GPU-stand-in), 15 GiB of 16 GiB free"));
  CHECK(has(tight, "note", "card 0", "is used by process 4242 with 512 MiB"));
  CHECK(has(tight, "warning", "card 0", "are more than is free"));
  CHECK(has(tight, "ok", "driver", "release 570.00"));
  const json roomy = doctor({{"LD_LIBRARY_PATH", libraries}, {"GPUPOOL_POOL_SIZE", "8GiB"}});
  CHECK_FALSE(has(roomy, "warning", "card 0", ""));
  CHECK(has(roomy, "note", "configuration", "set: pool.size=8GiB (GPUPOOL_POOL_SIZE)"));
}
#endif
