// The grammar: every text is a documented value or a named fault.
#include <random>

#include "config/parse.h"
#include "config/table.h"
#include "config/text.h"
#include "tests/catch.h"
#include "tests/config/support.h"

using namespace gpupool;

namespace {

struct SizeRow {
  std::string_view text;
  Fault fault;
  SizeOrShare value;
};

constexpr SizeOrShare bytes(Bytes count) { return {.bytes = count, .share = {}}; }
constexpr SizeOrShare share(std::uint32_t ppb) { return {.bytes = 0, .share = {ppb}}; }
constexpr SizeOrShare kUntouched = bytes(77);

template <class T>
Fault fault_of(std::string_view text) {
  T value{};
  return parse(text, value);
}

template <class T>
T value_of(std::string_view text) {
  T value{};
  REQUIRE(parse(text, value) == Fault::none);
  return value;
}

}  // namespace

TEST_CASE("sizes are read as documented or refused", "[config][case-35]") {
  const SizeRow rows[] = {
      {"4G", Fault::none, bytes(4'000'000'000)},
      {"4GB", Fault::none, bytes(4'000'000'000)},
      {"4GiB", Fault::none, bytes(4_GiB)},
      {"4Gi", Fault::none, bytes(4_GiB)},
      {"4g", Fault::none, bytes(4'000'000'000)},
      {"4gib", Fault::none, bytes(4_GiB)},
      {"4 GiB", Fault::none, bytes(4_GiB)},
      {"4096", Fault::none, bytes(4096)},
      {"4096B", Fault::none, bytes(4096)},
      {"4096M", Fault::none, bytes(4'096'000'000)},
      {"1.5G", Fault::none, bytes(1'500'000'000)},
      {"1.5GiB", Fault::none, bytes(1536_MiB)},
      {"0.1KiB", Fault::none, bytes(102)},
      {"08G", Fault::none, bytes(8'000'000'000)},
      {" 4G ", Fault::none, bytes(4'000'000'000)},
      {"4G\n", Fault::none, bytes(4'000'000'000)},
      {"\t4G\r\n", Fault::none, bytes(4'000'000'000)},
      {"50%", Fault::none, share(500'000'000)},
      {"0", Fault::none, bytes(0)},
      {"0GiB", Fault::none, bytes(0)},
      {"1TiB", Fault::none, bytes(1_TiB)},
      {"1000001", Fault::none, bytes(1'000'001)},
      {"1152921504606846976", Fault::none, bytes(Bytes{1} << 60)},
      {"-1", Fault::negative, {}},
      {"", Fault::empty, {}},
      {" \n", Fault::empty, {}},
      {"1e9", Fault::exponent, {}},
      {"1E+9", Fault::exponent, {}},
      {"99999999999999999999G", Fault::too_large, {}},
      {"1152921504606846977", Fault::too_large, {}},
      {"1048577TiB", Fault::too_large, {}},
      {"4X", Fault::unknown_unit, {}},
      {"4GiBs", Fault::unknown_unit, {}},
      {"4iB", Fault::unknown_unit, {}},
      {"0x10", Fault::unknown_unit, {}},
      {"4G 4G", Fault::unknown_unit, {}},
      {"+4G", Fault::not_a_number, {}},
      {"4.", Fault::not_a_number, {}},
      {".5G", Fault::not_a_number, {}},
      {"G", Fault::not_a_number, {}},
      {"unlimited", Fault::not_a_number, {}},
      {"1.0000000001GiB", Fault::too_precise, {}},
      {"512", Fault::no_unit, {}},
      {std::string_view{"4\0G", 3}, Fault::unknown_unit, {}},
  };
  for (const SizeRow& row : rows) {
    CAPTURE(in_quotes(row.text));
    SizeOrShare value = kUntouched;
    CHECK(parse(row.text, value) == row.fault);
    CHECK(value == (row.fault == Fault::none ? row.value : kUntouched));
  }
}

TEST_CASE("shares are between 1% and all of the card", "[config][case-36]") {
  const SizeRow rows[] = {
      {"1.0", Fault::none, share(Share::kWhole)},
      {"100%", Fault::none, share(Share::kWhole)},
      {"0.92", Fault::none, share(920'000'000)},
      {"92%", Fault::none, share(920'000'000)},
      {"92 %", Fault::none, share(920'000'000)},
      {"0.010", Fault::none, share(10'000'000)},
      {"33.3333333%", Fault::none, share(333'333'333)},
      {"0.3333333330000", Fault::none, share(333'333'333)},
      {"100", Fault::no_unit, {}},
      {"4.0", Fault::above_whole, {}},
      {"1.000000001", Fault::above_whole, {}},
      {"100.1%", Fault::above_whole, {}},
      {"101%", Fault::above_whole, {}},
      {"0.0", Fault::below_percent, {}},
      {"0%", Fault::below_percent, {}},
      {"0.92%", Fault::below_percent, {}},
      {"-0.5", Fault::negative, {}},
      {"nan", Fault::not_a_number, {}},
      {"inf", Fault::not_a_number, {}},
      {"0,8", Fault::decimal_comma, {}},
      {"33.33333333%", Fault::too_precise, {}},
      {"%", Fault::not_a_number, {}},
      {"50%%", Fault::unknown_unit, {}},
  };
  for (const SizeRow& row : rows) {
    CAPTURE(in_quotes(row.text));
    SizeOrShare value = kUntouched;
    CHECK(parse(row.text, value) == row.fault);
    CHECK(value == (row.fault == Fault::none ? row.value : kUntouched));
  }
}

TEST_CASE("a share of a card is exact integer arithmetic", "[config][case-36]") {
  CHECK(value_of<SizeOrShare>("92%").of(100_GiB) == 92_GiB);
  CHECK(value_of<SizeOrShare>("1.0").of(UINT64_MAX) == UINT64_MAX);
  CHECK(value_of<SizeOrShare>("50%").of(3) == 1);
  CHECK(value_of<SizeOrShare>("8GiB").of(1_GiB) == 8_GiB);
}

TEST_CASE("plain sizes take no share", "[config][case-35]") {
  CHECK(fault_of<Bytes>("50%") == Fault::no_share_here);
  CHECK(fault_of<Bytes>("0.5") == Fault::no_share_here);
  CHECK(value_of<Bytes>("0.5MiB") == 512_KiB);
}

TEST_CASE("growth is a size or a factor", "[config]") {
  CHECK(value_of<GrowthStep>("64MiB").step_from(8_GiB) == 64_MiB);
  CHECK(value_of<GrowthStep>("1.5x").step_from(4_GiB) == 2_GiB);
  CHECK(value_of<GrowthStep>("2X").step_from(4_GiB) == 4_GiB);
  CHECK(value_of<GrowthStep>("0").step_from(4_GiB) == 0);
  for (const auto* text : {"1x", "0.5x", "16.001x", "1.0001x"}) CHECK(fault_of<GrowthStep>(text) == Fault::bad_factor);
  CHECK(fault_of<GrowthStep>("50%") == Fault::no_share_here);
}

TEST_CASE("the other types", "[config]") {
  CHECK(value_of<HandleSize>("auto").automatic());
  CHECK(value_of<HandleSize>("32MiB").bytes == 32_MiB);
  CHECK(fault_of<HandleSize>("0") == Fault::out_of_range);
  CHECK(value_of<Share>("1").parts_per_billion == Share::kWhole);
  CHECK(fault_of<Share>("1GiB") == Fault::not_a_share);
  CHECK(value_of<bool>(" on\n"));
  CHECK_FALSE(value_of<bool>("false"));
  CHECK(fault_of<bool>("On") == Fault::not_on_off);
  CHECK(fault_of<bool>("") == Fault::empty);
  CHECK(value_of<Milliseconds>("1.5s") == Milliseconds{1500});
  CHECK(value_of<Milliseconds>("2min") == Milliseconds{120'000});
  for (const auto* text : {"1", "1h", "0.1ms", "1000000001s", "1099511627776000000s"}) {
    CHECK(fault_of<Milliseconds>(text) == Fault::bad_duration);
  }
  CHECK(value_of<Strategy>("auto_growth") == Strategy::auto_growth);
  CHECK(fault_of<Strategy>("AUTO_GROWTH") == Fault::not_a_choice);
  CHECK(value_of<BackingKind>("auto") == BackingKind::automatic);
  CHECK(value_of<std::string>(" a path ") == " a path ");
  CHECK(fault_of<std::string>("a\nb") == Fault::control_character);
  CHECK(value_of<NameList>(" python* , ,torchrun\n") == NameList{"python*", "torchrun"});
  CHECK(value_of<NameList>("").empty());
}

TEST_CASE("any text is a value that prints back, or a fault with its name and the text", "[config][case-35][case-36]") {
  std::mt19937 random{20240607};
  constexpr std::string_view kAlphabet{"0123456789019..%%KMGTkgiBbxXeE+-, \n\t\"\\\0\x01\x7f\xff_afnoumsz", 52};
  Options options;
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    const OptionRow& row = option_rows()[random() % option_rows().size()];
    const std::string before = row.get(options);
    const Fault fault = row.set(options, text);
    if (fault == Fault::none) {
      const std::string printed = row.get(options);
      Options again;
      REQUIRE(row.set(again, printed) == Fault::none);
      REQUIRE(row.get(again) == printed);
      continue;
    }
    REQUIRE(row.get(options) == before);
    Loaded loaded = load(nullptr);
    apply_setting(loaded, {SourceKind::environment, "X", 0, 0}, row.key, text);
    REQUIRE(loaded.diagnostics.size() == 1);
    const std::string message = loaded.diagnostics[0].message();
    REQUIRE(message.find(in_quotes(text)) != std::string::npos);
    REQUIRE(message.find(row.key) != std::string::npos);
    REQUIRE(test::is_one_printable_line(message));
    REQUIRE(loaded.options == Options{});
  }
}
