// Processes under the front. 0x101010 is what the small driver gives for 16 bytes (0x1010) with the mark of the core's
// hook: it says that a call was hooked, and once. "Native" is the same program without the preload.
#include <algorithm>

#include "tests/catch.h"
#include "tests/preload/front/run.h"

namespace {

std::string front(const char* kind) { return programs() + "/" + kind + "/libgpupool.so"; }

void same_as_native(const Said& native, const Said& preloaded) {
  CHECK(preloaded.status == native.status);
  CHECK(preloaded.out == native.out);
  CHECK(preloaded.err == native.err);
}

std::string lines(std::initializer_list<const char*> all) {
  std::string text;
  for (const char* line : all) text += std::string(line) + "\n";
  return text;
}

// The whole of a quiet process: nothing on stderr, exit status 0, these lines.
void says(const Said& said, const std::string& out) {
  CHECK(said.out == out);
  CHECK(said.err == "");
  CHECK(said.status == 0);
}

const std::string kHooked = lines({"first 0 101010", "second 0 101010", "same 1", "absent 1 1"});
const std::string kPlain = lines({"first 0 1010", "second 0 1010", "same 1", "absent 1 1"});

}  // namespace

TEST_CASE("programs without CUDA run as natively", "[case-9]") {
  if (emulated()) return;
  const std::vector<Words> commands = {
      {"true"},
      {"false"},
      {"bash", "-c", "echo out; echo err >&2; (exit 3)"},
      {"sh", "-c", "kill -9 $$"},
      {"python3", "-S", "-c", "import ctypes, os; print(ctypes.CDLL(None).getpid() == os.getpid(), os.cpu_count())"}};
  for (const Words& command : commands)
    for (const char* kind : {"good", "alone", "refused"})
      same_as_native(run(command), run(command, {{"LD_PRELOAD", front(kind)}}));
}

TEST_CASE("main() finds errno, descriptors, threads and signals as natively", "[case-11]") {
  same_as_native(run_probe({"probe", "process"}, ""), run_probe({"probe", "process"}, front("good")));
}

TEST_CASE("a driver opened by the program is hooked through dlsym") {
  says(run_probe({"probe", "opened"}, ""), kPlain);
  says(run_probe({"probe", "opened"}, front("good")), kHooked);
}

TEST_CASE("a driver opened by its path is hooked") {
  says(run_probe({"probe", "opened", programs() + "/driver/libcuda.so.1"}, front("good"), {{"LD_LIBRARY_PATH", "/"}}),
       kHooked);
}

TEST_CASE("a program linked with the driver is hooked") {
  says(run_probe({"direct"}, ""), "0 0 1010\n");
  says(run_probe({"direct"}, front("good")), "0 0 101010\n");
}

TEST_CASE("only exact names are answered, everything else is the loader's", "[case-6]") {
  const std::string driver = "libcuda.so.1";
  says(
      run_probe({"probe", "names"}, front("good")),
      "cuInit=" + driver +
          "\ncuMemAlloc_v2=libgpupool.so\ncuMemAlloc=NULL\ncuMemAlloc_v=NULL\ncuMemAlloc_v22=NULL\ncuMemAllocA=NULL\n" +
          "cublasCreate_v2=NULL\ncudnnCreate=NULL\ncurl_easy_init=NULL\ncu=NULL\nc=NULL\n=NULL\ngetpid=libc.so.6\n");
}

TEST_CASE("without a driver the default scope has no hooked name; with one it has what the driver has") {
  says(run_probe({"probe", "default"}, front("good")),
       lines({"before 0 error 1", "program 0", "other 1", "after 0 101010", "absent 0"}));
}

TEST_CASE("a hook called without a driver says so, loads none, and works once there is one") {
  says(run_probe({"probe", "without-driver"}, front("good")), lines({"call 3 0", "loaded 0", "later 0 101010"}));
}

TEST_CASE("register, stack and floating-point arguments survive the first call") {
  says(run_probe({"probe", "arguments"}, front("good")), "0 0\n0 0\n");
}

TEST_CASE("functions reached through cuGetProcAddress are hooked, also through itself") {
  says(run_probe({"probe", "proc-addresses"}, front("good")),
       lines({"v2 0 101010", "status 0", "v1 0 101010", "legacy 0 102010", "per-thread 0 103010", "old 0 status 1",
              "cuInit 1", "through itself 0 101010"}));
}

TEST_CASE("the driver's own look-ups find the driver", "[case-6]") {
  says(run_probe({"probe", "inner-lookup"}, front("good")), "the driver found 1001\n");
}

TEST_CASE("threads that race to the first call start the core once, and all are hooked") {
  const Said said = run_probe({"probe", "race"}, front("good"), {{"FRONT_TEST_COUNT", "1"}});
  CHECK(said.out == "marked 8 of 8\n");
  CHECK(said.err == "core started\n");
}

TEST_CASE("children forked before and after the first call are hooked", "[case-12]") {
  says(run_probe({"probe", "forked"}, front("good")),
       lines({"child 0 101010", "parent 0 101010", "child 0 101010", "parent 0 101010"}));
}

TEST_CASE("a child forked while the core starts stays on the driver, its parent is hooked") {
  says(run_probe({"probe", "opened"}, front("good"), {{"FRONT_TEST_FORK", "1"}}), kHooked);
}

TEST_CASE("of two copies of the front the first acts") {
  says(run_probe({"probe", "opened"}, front("good") + ":" + front("alone")), kHooked);
  says(run_probe({"direct"}, front("good") + ":" + front("alone")), "0 0 101010\n");
}

TEST_CASE("errno survives look-up and first call") {
  says(run_probe({"probe", "errno"}, front("good")), "77 77\n");
  says(run_probe({"probe", "errno"}, front("alone"), {{"GPUPOOL_DISABLE", "1"}}), "77 77\n");
}

TEST_CASE("a front preloaded by a relative path finds its core after the program changed directory") {
  says(run_probe({"probe", "moved"}, "./good/libgpupool.so", {}, programs()), kHooked);
}

TEST_CASE("a library with a function of a driver's name keeps it") {
  says(run_probe({"probe", "plugin", programs() + "/libplugin.so"}, front("good")), "plugin 0 7010\n");
}

TEST_CASE("a library opens its sibling by its own RUNPATH", "[case-10]") {
  says(run_probe({"probe", "runpath", programs() + "/libouter.so"}, front("good")), "42\n");
}

TEST_CASE("another preload that looks further with RTLD_NEXT works before and after the front", "[case-14]") {
  const std::string other = programs() + "/libnext_interposer.so";
  const std::string found = "next of itself is nothing 1, libc behind it 1\n";
  // Asked for by the driver's handle: neither order lets the other preload see that call.
  says(run_probe({"probe", "interposed"}, front("good") + ":" + other), found + kHooked);
  says(run_probe({"probe", "interposed"}, other + ":" + front("good")), found + kHooked);
  // Linked: whoever comes first is called first; behind the other one lies our hook.
  says(run_probe({"direct"}, other + ":" + front("good")), "0 0 1101010\n");
  says(run_probe({"direct"}, front("good") + ":" + other), "0 0 101010\n");
}

TEST_CASE("another preload that overrides dlsym works before and after the front", "[case-14]") {
  const std::string other = programs() + "/libdlsym_interposer.so";
  says(run_probe({"probe", "interposed"}, front("good") + ":" + other), "counted 1\n" + kHooked);
  says(run_probe({"probe", "interposed"}, other + ":" + front("good")), "counted 1\n" + kHooked);
}

TEST_CASE("without a usable core the program runs on the driver, and one line says so") {
  const char* const kinds[] = {"alone", "refused"};
  for (const char* kind : kinds) {
    const Said said = run_probe({"probe", "opened"}, front(kind));
    CHECK(said.status == 0);
    CHECK(said.out == kPlain);
    CHECK(said.err.rfind("gpupool: ", 0) == 0);
    CHECK(said.err.find(programs() + "/" + kind + "/libgpupool_core.so") != std::string::npos);
    CHECK((said.err.find("is of another build than this front, which is ") != std::string::npos) ==
          (kind == std::string("refused")));
    CHECK(said.err.find("; running on the plain driver\n") == said.err.size() - 30);
    CHECK(std::count(said.err.begin(), said.err.end(), '\n') == 1);
  }
}

TEST_CASE("GPUPOOL_DISABLE leaves the driver alone, in silence; empty and 0 do not disable") {
  for (const char* kind : {"good", "alone"}) {
    says(run_probe({"probe", "opened"}, front(kind), {{"GPUPOOL_DISABLE", "1"}}), kPlain);
    says(run_probe({"direct"}, front(kind), {{"GPUPOOL_DISABLE", "yes"}}), "0 0 1010\n");
  }
  says(run_probe({"probe", "opened"}, front("good"), {{"GPUPOOL_DISABLE", "0"}}), kHooked);
  says(run_probe({"probe", "opened"}, front("good"), {{"GPUPOOL_DISABLE", ""}}), kHooked);
}
