// `gpupool size`: the smallest pool by replay, and by a run on the simulated driver.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/replay/bisect.h"
#include "cli/size/steps.h"
#include "cli/trace/read.h"
#include "config/resolve.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

/// The size that is found for the trace with handles of `handle` bytes serves it without growth, and none below does.
void check_exact(const std::string& file, gpupool::Bytes handle, double waste) {
  using namespace gpupool;
  CAPTURE(file, handle);
  const cli::Trace trace = cli::read_trace(file);
  PoolOptions options;
  options.strategy = Strategy::auto_growth;
  options.handle.bytes = handle;
  ResolvedPool pool = resolve(options, 64_GiB, 64_GiB).pool;
  const cli::Smallest found = cli::smallest_pool(trace, pool);
  CHECK(found.size >= found.peak_live);
  CHECK(found.waste() < waste);
  pool.options.strategy = Strategy::best_fit;
  pool.headroom = 0;
  const auto serves = [&](Bytes size) {
    pool.size = pool.max = size;
    const cli::Outcome outcome = cli::play_pool(trace, pool);
    CHECK(outcome.growth_steps == 0);
    CHECK((outcome.oom == 0) == cli::pool_serves(trace, pool));
    return outcome.oom == 0;
  };
  CHECK(serves(found.size));
  // All of them: that one size is too small does not mean that every smaller one is.
  for (Bytes size = found.peak_live / handle * handle; size < found.size; size += handle) {
    CAPTURE(size);
    CHECK_FALSE(serves(size));
  }
}

}  // namespace

TEST_CASE("the size found serves the trace, and nothing smaller does") {
  using namespace gpupool;
  check_exact(source_path("tests/data/traces/gpt_varlen.csv.gz"), 2_MiB, 0.02);
}

TEST_CASE("so it is for every recorded trace") {
  using namespace gpupool;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/data/traces"))) {
    if (entry.path().extension() != ".md") check_exact(entry.path(), 32_MiB, 0.12);
  }
}

TEST_CASE("another order: each event once, no free before its request, and never more live memory") {
  using namespace gpupool;
  for (const char* file : {"gpt_varlen.csv.gz", "two_streams.trace"}) {
    const cli::Trace trace = cli::read_trace(source_path("tests/data/traces/") + file);
    ResolvedPool pool = resolve({}, 64_GiB, 64_GiB).pool;
    const cli::Outcome recorded = cli::play_pool(trace, pool);
    for (std::uint64_t seed : {0, 1, 2, 3}) {
      CAPTURE(file, seed);
      std::vector<Bytes> held(trace.slots);
      std::size_t index = 0;
      std::size_t elsewhere = 0;
      bool fits = true;
      cli::Order(seed).each(trace.events, [&](const cli::Event& event) {
        if (&event != &trace.events[index++]) ++elsewhere;
        fits = fits && (held[event.slot] == 0) == (event.bytes != 0);
        held[event.slot] = event.bytes;
        return true;
      });
      CHECK(index == trace.events.size());
      CHECK(fits);
      CHECK((elsewhere == 0) == (seed == 0));
      CHECK(elsewhere < index / 20);
      const cli::Outcome played = cli::play_pool(trace, pool, cli::Order(seed));
      CHECK(played.requests == recorded.requests);
      CHECK(played.peak_live_bytes <= recorded.peak_live_bytes);
    }
    std::size_t visited = 0;
    cli::Order(1).each(trace.events, [&](const cli::Event&) { return ++visited != 1000; });
    CHECK(visited == 1000);
  }
}

TEST_CASE("the size for next time serves orders that it was not looked for with, where the exact one does not") {
  using namespace gpupool;
  constexpr int kOthers = 100;
  for (const char* file : {"gpt_varlen.csv.gz", "jax_steps.trace", "two_streams.trace"}) {
    CAPTURE(file);
    const std::vector<cli::Trace> traces{cli::read_trace(source_path("tests/data/traces/") + file)};
    ResolvedPool pool = resolve({.strategy = Strategy::auto_growth}, 64_GiB, 64_GiB).pool;
    const cli::Smallest exact = cli::smallest_pool(traces.front(), pool);
    const Bytes steady = cli::steady_pool(traces, pool, exact.size, 64_MiB);
    CHECK(steady >= exact.size);
    CHECK(steady < exact.size + exact.size / 16);
    CHECK(steady % 64_MiB == 0);
    CHECK(cli::steady_pool(traces, pool, exact.size, 64_MiB) == steady);
    pool.options.strategy = Strategy::best_fit;
    pool.headroom = 0;
    const auto refused_with = [&](Bytes size) {
      pool.size = pool.max = size;
      int refused = 0;
      for (std::uint64_t seed = 1000; seed < 1000 + kOthers; ++seed)
        refused += cli::pool_serves(traces.front(), pool, cli::Order(seed)) ? 0 : 1;
      return refused;
    };
    CHECK(refused_with(exact.size) > kOthers / 10);
    CHECK(refused_with(steady) < 3);
    const cli::Outcome outcome = cli::play_pool(traces.front(), pool);
    CHECK(outcome.oom + outcome.growth_steps == 0);
  }
}

TEST_CASE("where the order cannot matter, the size for next time is the exact one") {
  const Folder folder;
  std::string lines;
  for (int block = 0; block < 10; ++block) lines += "a," + std::to_string(block) + ",67108864,0\n";
  for (int step = 0; step < 1000; ++step)
    lines += "f," + std::to_string(step) + "\na," + std::to_string(step + 10) + ",67108864,0\n";
  const json shown = json::parse(command({"size", folder.file("t.csv", lines), "--json"}).out);
  CHECK(shown["needed_bytes"] == 640 << 20);
  CHECK(shown["size_bytes"] == 640 << 20);
  CHECK(shown["rows"][0]["reordered_bytes"] == 640 << 20);
}

TEST_CASE("of several traces the size for next time serves all, and a margin is added to the exact need") {
  const std::string first = source_path("tests/data/traces/gpt_varlen.csv.gz");
  const std::string second = source_path("tests/data/traces/jax_steps.trace");
  const json both = json::parse(command({"size", first, second, "--json"}).out);
  for (const json& row : both["rows"]) {
    CHECK(row["reordered_bytes"] == row["size_bytes"]);
    CHECK(row["reordered_bytes"] >= row["needed_bytes"]);
    CHECK(both["size_bytes"] >= row["size_bytes"]);
  }
  const json exact = json::parse(command({"size", first, "--json", "--margin", "0%"}).out);
  CHECK(exact["needed_bytes"] == both["needed_bytes"]);
  CHECK(exact["size_bytes"] < both["size_bytes"]);
  CHECK(exact["size_bytes"].get<std::uint64_t>() - exact["needed_bytes"].get<std::uint64_t>() < (64 << 20));
  CHECK_FALSE(exact["rows"][0].contains("reordered_bytes"));
  const std::string most = "pool.max=" + std::to_string(exact["size_bytes"].get<std::uint64_t>());
  const Outcome tight = command({"size", first, "--json", "--set", most});
  CHECK(tight.status == 0);
  CHECK(json::parse(tight.out)["size_bytes"] == exact["size_bytes"]);
  CHECK(contains(tight.err, "holds the need as recorded; slightly other orders were served by"));
}

TEST_CASE("traces: the largest counts, and the configuration is written once") {
  const Folder folder;
  const std::string small = folder.file("small.csv", "a,1,1000000,0\n");
  const std::string large = folder.file("large.csv", "a,1,100000000,0\n");
  const std::string file = folder / "next.json";
  const Outcome found = command({"size", small, large, "--json", "--write", file});
  REQUIRE(found.status == 0);
  const json shown = json::parse(found.out);
  CHECK(shown["needed_bytes"] == 96 << 20);
  CHECK(shown["size_bytes"] == 128 << 20);
  CHECK(shown["rows"].size() == 2);
  CHECK(json::parse(read_text(file)) == shown["configuration"]);
  CHECK(command({"config", "--check", file}).status == 0);
  CHECK(command({"size", small, "--write", file}).status == 5);
  CHECK(command({"size", "--write", file, "--", "touch", folder / "started"}).status == 5);
  CHECK(read_text(file).size() > 0);
  CHECK_FALSE(std::filesystem::exists(folder / "started"));
  CHECK(contains(command({"size", small}).out, "next time: pool.size=64MiB"));
}

TEST_CASE("what a trace needs does not depend on the card that it has to fit on") {
  const Folder folder;
  const std::string small = folder.file("small.csv", "a,1,104857600\nf,1\n");
  const Outcome tight = command({"size", "--card", "64MiB", small});
  CHECK(tight.status == 0);
  CHECK(contains(tight.out, "need 100 MiB"));
  CHECK(contains(tight.out, "does not fit"));
  CHECK(contains(command({"size", "--card", "1GiB", small}).out, "need 100 MiB"));
  const Outcome large = command({"size", "--card", "1GiB", folder.file("large.csv", "a,1,550829555712\nf,1\n")});
  CHECK(contains(large.out, "need 513 GiB"));
  const Outcome beyond = command({"size", folder.file("beyond.csv", "a,1,5508295557120\nf,1\n")});
  CHECK(beyond.status == 3);
  CHECK(contains(beyond.err, "beyond.csv: 1 requests do not fit even on a card of"));
}

TEST_CASE("pool.max is kept where it holds the need, and told where it does not") {
  const Folder folder;
  const std::string trace = folder.file("t.csv", "a,1,1073741824,0\n");
  const Outcome kept = command({"size", trace, "--json", "--margin", "50%", "--set", "pool.max=1100MiB"});
  CHECK(kept.status == 0);
  const json next = json::parse(kept.out)["configuration"]["pool"];
  CHECK(next["size"] == "1100MiB");
  CHECK(next["max"] == "1100MiB");
  const Outcome less = command({"size", trace, "--json", "--set", "pool.max=1GB"});
  CHECK(less.status == 1);
  CHECK(contains(less.err, "is less than the need, and is left out"));
  CHECK_FALSE(json::parse(less.out)["configuration"]["pool"].contains("max"));
}

TEST_CASE("--target-waste takes the largest handle that keeps it") {
  const std::string trace = source_path("tests/data/traces/gpt_varlen.csv.gz");
  const json loose = json::parse(command({"size", trace, "--json", "--target-waste", "20%"}).out);
  CHECK(loose["configuration"]["pool"]["handle"] == "128MiB");
  CHECK(loose["rows"][0]["waste"] <= 0.2);
  const Outcome impossible = command({"size", trace, "--target-waste", "0%"});
  CHECK(impossible.status == 1);
  CHECK(contains(impossible.err, "no pool.handle reaches the target"));
  CHECK(command({"size", trace, "--margin", "0.5%"}).status == 0);
  CHECK(contains(command({"size", trace, "--margin", "100.1%"}).err, "\"100.1%\" is no share from 0% to 100%"));
}

TEST_CASE("traces or a program, and something to count") {
  CHECK(command({"size", source_path("tests/cli/golden/small.csv"), "--card", "0"}).status == 2);
  CHECK(command({"size", "--card", "0", "--", "true"}).status == 2);
  CHECK(command({"size"}).status == 2);
  CHECK(command({"size", "trace", "--", "true"}).status == 2);
  CHECK(contains(command({"size", "trace", "--unify"}).err, "--unify: goes with a program"));
  CHECK(contains(command({"size", "--", "true"}).err, "no process of it used device memory"));
  CHECK(command({"size", "--", "no-such-program"}).status == 127);
  CHECK(command({"size", "--margin", "lots", "--", "true"}).status == 2);
  CHECK(contains(command({"size", "--seconds", "0", "--", "true"}).err, "above 0 and below a billion"));
  CHECK(command({"size", "--steps", "0", "--", "true"}).status == 2);
  CHECK(command({"size", "--seconds", "nan", "--", "true"}).status == 2);
  CHECK(contains(command({"size", "--target-waste", "1%", "--", "true"}).err, "--target-waste: goes with traces"));
}

TEST_CASE("steps are ways back to what stays, whatever their size") {
  using namespace gpupool;
  cli::Steps steps;
  std::mt19937 random(1);
  Bytes live = 0;
  const auto go = [&](Bytes to) {  // in pieces, as allocations do
    while (live != to) {
      live += live < to ? std::min<Bytes>(to - live, 64_MiB) : -std::min<Bytes>(live - to, 64_MiB);
      steps.see(live);
    }
  };
  go(1_GiB);  // weights
  CHECK(steps.count() == 0);
  for (int i = 0; i < 40; ++i) {
    const Bytes most = 2_GiB + random() % 16 * 512_MiB;
    go(most);
    go(most - 128_MiB);  // something small at its top
    go(most);
    go(1536_MiB);  // gradients
    go(1600_MiB);
    go(1_GiB);
  }
  CHECK(steps.count() > 35);
  CHECK(steps.count() <= 40);
}

#ifdef GPUPOOL_TEST_DRIVER
TEST_CASE("a program: counted past the pool, or in a pool that grows") {
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  for (const char* how : {"--margin=10%", "--pooled"}) {
    CAPTURE(how);
    const Outcome counted = command({"size", how, "--json", "--", GPUPOOL_TEST_PROGRAM, "plain"}, variables);
    CAPTURE(counted.err);
    REQUIRE(counted.status == 0);
    const json shown = json::parse(counted.out);
    CHECK(shown["rows"].size() == 1);
    CHECK(shown["needed_bytes"] > 40 << 20);
    CHECK(shown["needed_bytes"] < 60 << 20);
    CHECK(shown["size_bytes"] == 64 << 20);
  }
}

TEST_CASE("a program that was refused memory needs more than was counted, and that is told") {
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "1GiB"}};
  const Outcome counted = command({"size", "--", GPUPOOL_TEST_PROGRAM, "out_of_memory"}, variables);
  CAPTURE(counted.err);
  CHECK(counted.status == 1);
  CHECK(contains(counted.err, "out of memory: 1 requests"));
  CHECK(contains(counted.out, "next time: pool.size="));
}

TEST_CASE("a recorded run: one row for each device, with its rank") {
  const Folder folder;
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER},
                            {"GPUPOOL_SIM_MEMORY", "4GiB"},
                            {"GPUPOOL_SIM_DEVICES", "2"},
                            {"RANK", "7"}};
  const std::string file = folder / "t";
  REQUIRE(command({"run", "--trace", file, "--set", "stats.summary=off", "--", GPUPOOL_TEST_PROGRAM, "two_devices"},
                  variables)
              .status == 0);
  const Outcome sized = command({"size", file, "--json"});
  CAPTURE(sized.err);
  REQUIRE(sized.status == 0);
  const json rows = json::parse(sized.out)["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[1]["name"] == file + " (rank 7, device 1)");
  CHECK(rows[1]["rank"] == "7");
  CHECK(rows[1]["needed_bytes"] > 0);
  CHECK(json::parse(command({"replay", file, "--json"}).out)["format"] == "gpupool");
}

TEST_CASE("what is used beside the pool becomes the headroom, and says how many fit on the card") {
  const Folder folder;
  const std::string file = folder / "next.json";
  const Variables variables{{"LD_LIBRARY_PATH", std::string{GPUPOOL_TEST_DRIVER} + ":" + GPUPOOL_TEST_NVML},
                            {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  // The card holds 600 MiB more than before, the program at most 48 of them.
  const Outcome counted =
      command({"size", "--steps", "20", "--json", "--write", file, "--", GPUPOOL_TEST_PROGRAM, "steps"}, variables);
  CAPTURE(counted.err);
  REQUIRE(counted.status == 0);
  const json shown = json::parse(counted.out);
  const std::uint64_t outside = std::uint64_t{552} << 20;
  CHECK(shown["outside_bytes"] == outside);
  CHECK(shown["configuration"]["pool"]["headroom"] == "576MiB");
  CHECK(shown["card"]["name"] == "Stand-in card");
  CHECK(shown["card"]["each_bytes"] == outside + (64 << 20));
  CHECK(shown["card"]["fits"] == (std::uint64_t{16} << 30) / (outside + (64 << 20)));
  CHECK(command({"config", "--check", file}).status == 0);
  // Gone between two looks: what is known of it is what it held, and that the card was fuller.
  const Outcome text = command(
      {"size", "--card", "100MiB", "--", "sh", "-c", std::string{"sleep 0.3; "} + GPUPOOL_TEST_PROGRAM + " plain"},
      variables);
  CHECK(contains(text.out, "on a card of 100 MiB: does not fit (64 MiB of pool and "));
  CHECK(contains(text.out, " and 10% to spare, in steps of 64 MiB)"));
}

TEST_CASE("where the driver names the processes, others on the card do not count") {
  const Folder folder;
  const std::string users = folder / "users";
  Variables variables{{"LD_LIBRARY_PATH", std::string{GPUPOOL_TEST_DRIVER} + ":" + GPUPOOL_TEST_NVML},
                      {"GPUPOOL_SIM_MEMORY", "4GiB"},
                      {"GPUPOOL_TEST_NVML_USERS", users}};
  const auto outside_with = [&](const std::string& own) {
    const std::string program =
        "echo \"4242 9000000000\n" + own + "\" >'" + users + "'; exec '" + GPUPOOL_TEST_PROGRAM + "' steps";
    const Outcome counted = command({"size", "--steps", "20", "--json", "--", "sh", "-c", program}, variables);
    CAPTURE(counted.err);
    REQUIRE(counted.status == 0);
    const json shown = json::parse(counted.out);
    CHECK(shown.contains("advice") == (own.find("$$") == std::string::npos));  // that the card was shared
    return shown["outside_bytes"].get<std::uint64_t>();
  };
  CHECK(outside_with("$$ 734003200") == std::uint64_t{652} << 20);  // 700 MiB, of which 48 are the program's own
  CHECK(outside_with("4243 734003200") == std::uint64_t{552} << 20);
}

TEST_CASE("--unify sets the frameworks' switches for the run, and says that the next one needs them") {
  const Folder folder;
  const Variables variables{
      {"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}, {"TF_GPU_ALLOCATOR", "own"}};
  const std::string seen = folder / "seen";
  const std::string program = std::string{GPUPOOL_TEST_PROGRAM} + " plain; env > '" + seen + "'";
  const Outcome with = command({"size", "--unify", "--json", "--", "sh", "-c", program}, variables);
  CAPTURE(with.err);
  REQUIRE(with.status == 0);
  CHECK(contains(with.err, "gpupool: set PYTORCH_ALLOC_CONF=backend:cudaMallocAsync (PyTorch)\n"));
  CHECK(contains(with.err, "gpupool: kept TF_GPU_ALLOCATOR=own (TensorFlow)"));
  CHECK(contains(read_text(seen), "\nPYTORCH_ALLOC_CONF=backend:cudaMallocAsync\n"));
  const json advice = json::parse(with.out)["advice"];
  REQUIRE(advice.size() == 1);
  CHECK(contains(advice[0].get<std::string>(), "gpupool run --unify"));
  const Outcome without = command({"size", "--json", "--", "sh", "-c", program}, variables);
  CHECK_FALSE(contains(read_text(seen), "PYTORCH_ALLOC_CONF"));
  CHECK_FALSE(json::parse(without.out).contains("advice"));
}

TEST_CASE("a framework's cache that is left on is told, and one that is switched off is not") {
  const Folder folder;
  const std::string library = folder / "libc10_cuda.so";
  std::filesystem::copy_file(std::string{GPUPOOL_TEST_NVML} + "/libnvidia-ml.so.1", library);
  Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  // Long enough to be looked at.
  const std::string program = std::string{GPUPOOL_TEST_PROGRAM} + " plain; LD_PRELOAD='" + library + "' sleep 2";
  const Outcome on = command({"size", "--", "sh", "-c", program}, variables);
  CAPTURE(on.out, on.err);
  CHECK(contains(on.out, "\nPyTorch has a cache of its own"));
  CHECK_FALSE(contains(on.out, "JAX"));
  variables["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync";
  CHECK_FALSE(contains(command({"size", "--", "sh", "-c", program}, variables).out, "PyTorch"));
}

#ifdef GPUPOOL_TEST_DRIVER
TEST_CASE("size around size says whose the count is") {
  const Outcome outer = command({"size", "--", GPUPOOL_TEST_COMMAND, "size", "--", GPUPOOL_TEST_PROGRAM, "plain"},
                                {{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}});
  CHECK(outer.status == 4);
  CHECK(contains(outer.out, "next time: pool.size=64MiB"));  // the inner one's
  CHECK(contains(outer.err, "%p.json gets nothing of this run, which is counted here"));
}
#endif

TEST_CASE("--seconds interrupts the program and counts all the same") {
  CHECK(command({"size", "--seconds", "soon", "--", "true"}).status == 2);
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  const Outcome stopped =
      command({"size", "--seconds", "6", "--", "sh", "-c",
               std::string{"trap exit INT; "} + GPUPOOL_TEST_PROGRAM + " plain; while :; do sleep 0.1; done"},
              variables);
  CAPTURE(stopped.err);
  CHECK(stopped.status == 0);
  CHECK(contains(stopped.err, "was stopped after --seconds"));
  CHECK(contains(stopped.out, "next time: pool.size=64MiB"));
}

TEST_CASE("--steps counts the loop that no memory shows but its own, and asks all of the program to end") {
  const Folder folder;
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  const std::string ended = folder / "ended";
  // A shell that waits for what runs in it would leave it running if the shell alone were asked.
  const std::string program = std::string{GPUPOOL_TEST_PROGRAM} + " steps; echo $? >'" + ended + "'; exit 0";
  const Outcome stopped = command({"size", "--steps", "5", "--json", "--", "sh", "-c", program}, variables);
  CAPTURE(stopped.out, stopped.err);
  CHECK(stopped.status == 0);
  CHECK(contains(stopped.err, "was stopped after --steps"));
  CHECK_FALSE(contains(stopped.err, "need so far"));  // no terminal, no progress
  CHECK(json::parse(stopped.out)["needed_bytes"] == 48 << 20);
}

TEST_CASE("processes that end without a report are counted all the same, each in a row") {
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  const std::string program{GPUPOOL_TEST_PROGRAM};
  const std::string job =
      "RANK=0 " + program + " plain; RANK=1 " + program + " quick_exit; RANK=2 " + program + " becomes_another; true";
  for (const char* how : {"--margin=10%", "--pooled"}) {
    CAPTURE(how);
    const Outcome counted = command({"size", how, "--json", "--", "sh", "-c", job}, variables);
    CAPTURE(counted.out, counted.err);
    REQUIRE(counted.status == 0);
    const json rows = json::parse(counted.out)["rows"];
    std::map<std::string, unsigned> of_rank;
    for (const json& row : rows) ++of_rank[row["rank"]];
    CHECK(of_rank == std::map<std::string, unsigned>{{"0", 1}, {"1", 1}, {"2", 2}});
    for (const json& row : rows) CHECK(row["size_bytes"] == 64 << 20);
  }
  const Outcome text = command({"size", "--", "sh", "-c", job}, variables);
  CHECK(contains(text.out, "\n3 MiB       pool.size=64MiB       rank 1: "));
}

TEST_CASE("the report of a real run is read back") {
  const Folder folder;
  const Variables variables{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER}, {"GPUPOOL_SIM_MEMORY", "4GiB"}};
  const std::string file = folder / "r.json";
  REQUIRE(
      command({"run", "--stats", file, "--set", "stats.summary=off", "--", GPUPOOL_TEST_PROGRAM, "plain"}, variables)
          .status == 0);
  const Outcome shown = command({"report", file, "--json"});
  REQUIRE(shown.status == 0);
  const json pool = json::parse(shown.out)["pools"][0];
  CHECK(pool["requests"] > 0);
  CHECK(pool["live.peak"] > 40 << 20);
  CHECK(pool["advice_size"] == 64 << 20);
}
#endif
