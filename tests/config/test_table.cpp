// The table as data.
#include "config/table.h"

#include <set>

#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("every row is complete and its default is what the structs hold", "[config]") {
  std::set<std::string> names;
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.key);
    CHECK(names.insert(environment_name(row.key)).second);
    CHECK(row.sentence.ends_with('.'));
    CHECK_FALSE(row.unit.empty());
    CHECK((row.kind == ValueKind::choice) == !row.choices.empty());
    Options options;
    const std::string held = row.get(options);
    CHECK(row.set(options, row.default_text) == Fault::none);
    CHECK(row.get(options) == held);
  }
}

TEST_CASE("defaults of the structs", "[config]") {
  const Options options;
  CHECK(options.pool.strategy == Strategy::best_fit);
  CHECK(options.pool.size.share.parts_per_billion == 920'000'000);
  CHECK(options.pool.growth.step == 64_MiB);
  CHECK(options.pool.handle.automatic());
  CHECK(options.stats.interval == Milliseconds{1000});
  CHECK(options.log.path == "stderr");
  CHECK(options.processes.include == NameList{"*"});
  CHECK(options.processes.exclude.empty());
}

TEST_CASE("ranges are kept", "[config]") {
  Options options;
  const auto set = [&options](std::string_view key, std::string_view text) {
    return find_option(key)->set(options, text);
  };
  CHECK(set("pool.handle", "3MiB") == Fault::out_of_range);
  CHECK(set("pool.handle", "1MiB") == Fault::out_of_range);
  CHECK(set("pool.handle", "2MiB") == Fault::none);
  CHECK(set("pool.max", "0") == Fault::out_of_range);
  CHECK(set("pool.size", "0") == Fault::none);
  CHECK(set("stats.interval", "9ms") == Fault::out_of_range);
  CHECK(range_text(*find_option("pool.handle")) == "2MiB to 64GiB, a multiple of 2MiB");
  CHECK(range_text(*find_option("pool.max")) == "above 0");
  CHECK(range_text(*find_option("stats.interval")) == "10ms to 3600s");
  CHECK(range_text(*find_option("pool.backing")) == "auto, vmm, arena");
}

TEST_CASE("names", "[config][case-38]") {
  CHECK(environment_name("pool.direct_above") == "GPUPOOL_POOL_DIRECT_ABOVE");
  CHECK(find_option("pool.siz") == nullptr);
  const std::vector<std::string> keys = {"pool.size", "pool.max_split", "log.level"};
  CHECK(nearest_name("pool.sise", keys) == "pool.size");
  CHECK(nearest_name("POOL.SIZE", keys) == "pool.size");
  CHECK(nearest_name("opol.siez", keys) == "pool.size");
  CHECK(nearest_name("pool.maxsplit", keys) == "pool.max_split");
  CHECK(nearest_name("temperature", keys).empty());
  CHECK(nearest_name("", keys).empty());
  CHECK(nearest_name(std::string(100'000, 'p'), keys).empty());
}

TEST_CASE("every fault has its own words", "[config]") {
  std::set<std::string_view> texts;
  for (int i = 0; i <= static_cast<int>(Fault::wrong_json_type); ++i) {
    CHECK(texts.insert(fault_text(static_cast<Fault>(i))).second);
  }
}
