// `gpupool cdi`: what a container runtime is told to do, and what becomes of an image's own LD_PRELOAD.
#include <nlohmann/json.hpp>

#include <cstdlib>

#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;

namespace {

nlohmann::json edits_of(const std::vector<std::string>& options) {
  std::vector<std::string> words{"cdi"};
  words.insert(words.end(), options.begin(), options.end());
  const Outcome outcome = command(words);
  CHECK(outcome.status == 0);
  const nlohmann::json specification = nlohmann::json::parse(outcome.out);
  CHECK(specification.at("kind") == "gpupool.dev/pool");
  CHECK(specification.at("devices").at(0).at("name") == "all");
  return specification.at("devices").at(0).at("containerEdits");
}

}  // namespace

TEST_CASE("the libraries' folder is mounted read-only, and the front preloaded from there") {
  const nlohmann::json edits = edits_of({});
  const std::string front = GPUPOOL_TEST_FRONT;
  const nlohmann::json& mount = edits.at("mounts").at(0);
  CHECK(mount.at("hostPath") == front.substr(0, front.rfind('/')));
  CHECK(mount.at("containerPath") == "/opt/gpupool/lib");
  CHECK(mount.at("options").at(0) == "ro");
  CHECK(edits.at("env") == nlohmann::json{"LD_PRELOAD=/opt/gpupool/lib/libgpupool.so"});
}

TEST_CASE("options and a configuration file go with it") {
  const Folder folder;
  const std::string file = folder.file("pool.json", R"({"pool": {"size": "2GiB"}})");
  const nlohmann::json edits = edits_of({"--set", "pool.strategy=auto_growth", "--config", file});
  CHECK(edits.at("env").at(0) == "GPUPOOL_POOL_STRATEGY=auto_growth");
  CHECK(edits.at("env").at(1) == "GPUPOOL_CONFIG=/opt/gpupool/gpupool.json");
  CHECK(edits.at("mounts").at(1).at("hostPath") == file);
}

TEST_CASE("what the image preloads is kept, behind ours, and the replacing is explained") {
  const Outcome outcome = command({"cdi", "--preload", "/usr/lib/libjemalloc.so.2"});
  CHECK(contains(outcome.out, "LD_PRELOAD=/opt/gpupool/lib/libgpupool.so:/usr/lib/libjemalloc.so.2"));
  CHECK(contains(outcome.err, "a runtime replaces the image's LD_PRELOAD=/usr/lib/libjemalloc.so.2"));
}

TEST_CASE("what the image preloads is shown without its control characters") {
  const Outcome outcome = command({"cdi", "--preload", "/x/\x1b[31mred.so"});
  CHECK(contains(outcome.err, "LD_PRELOAD=/x/\\x1b[31mred.so by"));
}

TEST_CASE("an image's LD_PRELOAD is found in what its runtime says of it") {
  const Folder folder;
  const auto inspected = [&](const std::string& name, const std::string& config) {
    return folder.file(name, R"([{"Id": "sha256:1", "Config": )" + config + "}]");
  };
  const std::string with = inspected("with.json", R"({"Env": ["PATH=/bin", "LD_PRELOAD=/usr/lib/libjemalloc.so.2"]})");
  const Outcome kept = command({"cdi", "--image", with});
  CHECK(contains(kept.out, "LD_PRELOAD=/opt/gpupool/lib/libgpupool.so:/usr/lib/libjemalloc.so.2"));
  CHECK(contains(kept.err, "a runtime replaces the image's LD_PRELOAD=/usr/lib/libjemalloc.so.2"));
  const std::string piped = folder / "piped.json";
  const std::string words = GPUPOOL_TEST_COMMAND " cdi --image <(cat " + with + ") >" + piped + " 2>&1";
  CHECK(std::system(("bash -c '" + words + "'").c_str()) == 0);
  CHECK(contains(read_text(piped), "libgpupool.so:/usr/lib/libjemalloc.so.2"));
  for (const char* config : {R"({"Env": ["PATH=/bin"]})", "{}", "null", R"({"Env": null})"}) {
    const Outcome plain = command({"cdi", "--image", inspected("without.json", config)});
    CHECK(plain.status == 0);
    CHECK(plain.err.empty());
    CHECK(contains(plain.out, "LD_PRELOAD=/opt/gpupool/lib/libgpupool.so\""));
  }
  for (const char* text : {"", "[]", "{}", "[1]", "no json"}) {
    const Outcome refused = command({"cdi", "--image", folder.file("wrong.json", text)});
    CHECK(refused.status != 0);
    CHECK(refused.out.empty());
  }
  CHECK(command({"cdi", "--image", "/nowhere/at/all"}).status != 0);
}

TEST_CASE("faults of the configuration file are told, and the image's LD_PRELOAD is given in one way") {
  const Folder folder;
  const std::string file = folder.file("bad.json", R"({"pool": {"siez": "1GiB", "size": "much"}})");
  const Outcome outcome = command({"cdi", "--config", file});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "did you mean pool.size?"));
  CHECK(contains(outcome.err, "pool.size: \"much\" is not a number"));
  CHECK(nlohmann::json::parse(outcome.out).contains("devices"));
  const Outcome both = command({"cdi", "--image", file, "--preload", "/z.so"});
  CHECK(both.status == 2);
  CHECK(both.out.empty());
}

TEST_CASE("a setting that the configuration does not know makes no specification") {
  const Outcome outcome = command({"cdi", "--set", "pool.planted=1"});
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
}
