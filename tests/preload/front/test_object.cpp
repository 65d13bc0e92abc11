// The front as an object: exactly the hooks and dlsym are exported, and nothing in it can disturb a process that loads
// it.
#include <set>
#include <sstream>

#include "preload/hooks.h"
#include "tests/catch.h"
#include "tests/preload/front/run.h"

namespace {

std::string readelf(const std::string& what) {
  const Said said = run({"readelf", "-W", what, programs() + "/alone/libgpupool.so"});
  REQUIRE(said.status == 0);
  REQUIRE(said.err.empty());
  return said.out;
}

}  // namespace

TEST_CASE("the front exports the rows of hooks.def and dlsym, and imports nothing that must be there", "[case-8]") {
  std::set<std::string> expected = {"dlsym"}, exported, imported;
  for (const gpupool::Hook& hook : gpupool::kHooks) expected.insert(hook.symbol);
  std::istringstream lines(readelf("--dyn-syms"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, value, size, type, binding, visibility, section, name;
    fields >> number >> value >> size >> type >> binding >> visibility >> section >> name;
    if (name.empty() || number.back() != ':' || number == "Num:" || binding == "LOCAL") continue;
    if (section == "UND") {
      CHECK(binding == "WEAK");
      imported.insert(name);
    } else {
      CHECK(type == "FUNC");
      exported.insert(name);
    }
  }
  CHECK(exported == expected);
  CHECK(imported == std::set<std::string>{"_dl_debug_addr", "_r_debug"});
}

TEST_CASE("the front needs no library, runs nothing when loaded, and has no version of its own", "[case-8]") {
  const std::string dynamic = readelf("--dynamic");
  for (const char* entry : {"(NEEDED)", "(INIT)", "(INIT_ARRAY)", "(FINI)", "(FINI_ARRAY)", "(TEXTREL)", "(VERDEF)",
                            "(VERNEED)", "(RUNPATH)"})
    CHECK(dynamic.find(entry) == std::string::npos);
  CHECK(dynamic.find("[libgpupool.so]") != std::string::npos);
}

TEST_CASE("the front asks for no executable stack and no writable code") {
  std::istringstream lines(readelf("--program-headers"));
  bool stack_seen = false;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.find("RWE") == std::string::npos);
    stack_seen |= line.find("GNU_STACK") != std::string::npos;
  }
  CHECK(stack_seen);
}
