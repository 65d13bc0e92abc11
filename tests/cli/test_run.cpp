// `gpupool run`: the environment that the program gets, and the program's own exit status.
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/libraries.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;

namespace {

Variables environment_of(const Outcome& outcome) {
  Variables variables;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    variables[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  return variables;
}

Variables run_env(std::vector<std::string> options, const Variables& variables = {}) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"--", "env"});
  const Outcome outcome = command(options, variables);
  CHECK(outcome.status == 0);
  return environment_of(outcome);
}

}  // namespace

TEST_CASE("the program gets the preload and a variable for each option") {
  const Variables seen = run_env({"--size", "8GiB", "--max=90%", "--headroom", "1GiB", "--strategy", "auto_growth",
                                  "--stats", "s-%p.json", "--set", "pool.handle=32MiB"});
  CHECK(seen.at("LD_PRELOAD") == GPUPOOL_TEST_FRONT);
  CHECK(seen.at("GPUPOOL_POOL_SIZE") == "8GiB");
  CHECK(seen.at("GPUPOOL_POOL_MAX") == "90%");
  CHECK(seen.at("GPUPOOL_POOL_HEADROOM") == "1GiB");
  CHECK(seen.at("GPUPOOL_POOL_STRATEGY") == "auto_growth");
  CHECK(seen.at("GPUPOOL_STATS_PATH") == "s-%p.json");
  CHECK(seen.at("GPUPOOL_POOL_HANDLE") == "32MiB");
  CHECK_FALSE(seen.contains("PYTORCH_ALLOC_CONF"));
}

TEST_CASE("the library is found beside the command, wherever both were put, and through links") {
  namespace fs = std::filesystem;
  const Folder folder;
  for (const char* place : {"lib", "lib/gpupool", "lib64", "lib64/gpupool", "bin"}) {
    CAPTURE(place);
    const fs::path root = folder / place + "-root";
    fs::create_directories(root / "bin");
    fs::create_directories(root / place);
    fs::copy_file(GPUPOOL_TEST_COMMAND, root / "bin/gpupool");
    fs::copy_file(GPUPOOL_TEST_FRONT, root / place / "libgpupool.so");
    fs::create_symlink(root / "bin/gpupool", root / "link");
    const std::string seen = folder / "seen";
    const std::string program = (root / "link").string() + " run -- sh -c 'echo $LD_PRELOAD' >" + seen + " 2>&1";
    CHECK(std::system(program.c_str()) == 0);
    CHECK(read_text(seen) == (root / place / "libgpupool.so").string() + "\n");
  }
}

TEST_CASE("what is in LD_PRELOAD stays, behind ours and only once") {
  const std::string front = GPUPOOL_TEST_FRONT;
  CHECK(run_env({}, {{"LD_PRELOAD", front}}).at("LD_PRELOAD") == front);
  using gpupool::cli::preload_list;
  CHECK(preload_list("/x/front.so", "") == "/x/front.so");
  CHECK(preload_list("/x/front.so", "/a.so /b.so:/c.so") == "/x/front.so:/a.so /b.so:/c.so");
  CHECK(preload_list("/x/front.so", "/a.so:/x/front.so") == "/a.so:/x/front.so");
  CHECK(gpupool::cli::preload_entries(" :/a.so: /b.so ") == std::vector<std::string>{"/a.so", "/b.so"});
}

TEST_CASE("--unify sets what the user has not set, and says so") {
  const Outcome all = command({"run", "--unify", "--", "env"});
  const Variables seen = environment_of(all);
  CHECK(seen.at("PYTORCH_ALLOC_CONF") == "backend:cudaMallocAsync");
  CHECK(seen.at("PYTORCH_CUDA_ALLOC_CONF") == "backend:cudaMallocAsync");
  CHECK(seen.at("XLA_PYTHON_CLIENT_ALLOCATOR") == "cuda_async");
  CHECK(seen.at("XLA_PYTHON_CLIENT_PREALLOCATE") == "false");  // else one request of 75 % of the card comes first
  CHECK(seen.at("TF_GPU_ALLOCATOR") == "cuda_malloc_async");
  CHECK(seen.at("FLAGS_use_cuda_malloc_async_allocator") == "1");
  CHECK(contains(all.err, "gpupool: set TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow)\n"));
  const Outcome kept = command({"run", "--unify", "--", "env"}, {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"}});
  CHECK_FALSE(environment_of(kept).contains("PYTORCH_ALLOC_CONF"));
  CHECK(environment_of(kept).at("PYTORCH_CUDA_ALLOC_CONF") == "max_split_size_mb:128");
  CHECK(contains(kept.err, "kept PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"));
}

TEST_CASE("the exit status is the program's") {
  CHECK(command({"run", "--", "sh", "-c", "exit 7"}).status == 7);
  CHECK(command({"run", "--", "sh", "-c", "kill -9 $$"}).status == 128 + 9);
  const Outcome missing = command({"run", "--", "no-such-program"});
  CHECK(missing.status == 127);
  CHECK(missing.err == "gpupool: run: error: no-such-program: No such file or directory\n");
  CHECK(command({"run", "--", ""}).err == "gpupool: run: error: \"\": No such file or directory\n");
  const Folder folder;
  CHECK(command({"run", "--", folder.file("text", "no program")}).status == 126);
}

TEST_CASE("a wrong setting starts nothing") {
  const Folder folder;
  const std::string mark = folder / "started";
  const auto refused = [&](std::vector<std::string> options, int status, const char* message) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", "touch", mark});
    const Outcome outcome = command(options);
    CHECK(outcome.status == status);
    CAPTURE(outcome.err);
    CHECK(contains(outcome.err, message));
    CHECK(read_text(mark).empty());
  };
  refused({"--size", "100"}, 2, "pool.size: \"100\" has no unit");
  refused({"--strategy", "bestfit"}, 2, "did you mean best_fit?");
  refused({"--set", "pool.siez=1GiB"}, 2, "did you mean pool.size?");
  refused({"--set", "pool.siez=1GiB"}, 2, "pool.siez: is no option; did");
  refused({"--set", "pool.size"}, 2, "is not KEY=VALUE");
  refused({"--config", folder / "none.json"}, 3, "none.json: does not exist");
  refused({"--config", folder.file("c.json", "{\"pool\": ]}")}, 3, "c.json:1:10");
  refused({"--library", folder / "none.so"}, 4, "libgpupool.so is not at");
  refused({"--library", folder.file("text.so", "hello")}, 3, "text.so is no library");
  refused({"--library", folder.file("cut.so", read_text(GPUPOOL_TEST_FRONT).substr(0, 5000))}, 3,
          "is not libgpupool.so");
  refused({"--library", GPUPOOL_TEST_PLUGIN}, 3, "is not libgpupool.so, whatever its name");
  refused({"--library", GPUPOOL_TEST_COMMAND}, 3, "is not libgpupool.so, whatever its name");
  std::string foreign = read_text(GPUPOOL_TEST_FRONT);
  foreign[18] = '\x03';  // e_machine
  refused({"--library", folder.file("foreign.so", foreign)}, 3, "is for another processor or word size");
  CHECK(command({"cdi", "--library", folder / "text.so"}).status == 3);
  CHECK(command({"size", "--library", folder / "text.so", "--", "true"}).status == 3);
}

TEST_CASE("the configuration file is handed on by its absolute path") {
  const Folder folder;
  const std::string file = folder.file("c.json", "{}");
  CHECK(run_env({"--config", file}).at("GPUPOOL_CONFIG") == file);
}
