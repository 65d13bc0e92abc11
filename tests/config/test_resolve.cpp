// Amounts on a card: limits, contradictions and their messages.
#include "config/resolve.h"

#include <random>

#include "tests/catch.h"
#include "tests/config/support.h"

using namespace gpupool;

namespace {

constexpr Bytes kTotal = 80_GiB;
constexpr Bytes kFree = 79_GiB;

SizeOrShare bytes(Bytes count) { return {.bytes = count, .share = {}}; }
SizeOrShare percent(std::uint32_t count) { return {.bytes = 0, .share = {count * 10'000'000}}; }

Bytes whole(Bytes count) { return count / kHandleGranularity * kHandleGranularity; }

void check_one(const Resolution& resolution, Severity severity, std::string_view key) {
  CAPTURE(test::messages(resolution.diagnostics));
  REQUIRE(resolution.diagnostics.size() == 1);
  CHECK(resolution.diagnostics[0].severity == severity);
  CHECK(resolution.diagnostics[0].key == key);
  CHECK_FALSE(resolution.diagnostics[0].used.empty());
}

}  // namespace

TEST_CASE("defaults on an idle card need no message", "[config]") {
  const Resolution r = resolve({}, kTotal, kFree);
  CHECK(r.diagnostics.empty());
  CHECK(r.pool.size == whole(SizeOrShare{percent(92)}.of(kTotal)));
  CHECK(r.pool.max == kTotal - 512_MiB);
  CHECK(r.pool.headroom == 512_MiB);
  CHECK(r.pool.growth_from(r.pool.size) == 64_MiB);
  CHECK(r.pool.growth_from(r.pool.max - 1_MiB) == 1_MiB);
  CHECK(r.pool.growth_from(r.pool.max) == 0);
}

TEST_CASE("equal size and max work, also when both are odd", "[config][case-39]") {
  const Resolution even = resolve({.size = bytes(8_GiB), .max = bytes(8_GiB)}, kTotal, kFree);
  CHECK(even.diagnostics.empty());
  CHECK(even.pool.size == 8_GiB);
  CHECK(even.pool.max == 8_GiB);

  const Resolution odd = resolve({.size = bytes(8_GiB + 1), .max = bytes(8_GiB + 1)}, kTotal, kFree);
  CHECK(odd.diagnostics.empty());
  CHECK(odd.pool.size == odd.pool.max);

  // Less than one handle: one handle, and said so.
  const Resolution tiny = resolve({.size = bytes(1'000'001), .max = bytes(1'000'001), .growth = {}}, kTotal, kFree);
  check_one(tiny, Severity::warning, "pool.max");
  CHECK(tiny.pool.size == 2_MiB);
  CHECK(tiny.pool.max == 2_MiB);
}

TEST_CASE("contradictions get one message and a stated fallback", "[config][case-39]") {
  const Resolution size_above_max = resolve({.size = bytes(10_GiB), .max = bytes(8_GiB)}, kTotal, kFree);
  check_one(size_above_max, Severity::warning, "pool.size");
  CHECK(size_above_max.pool.size == 8_GiB);

  const Resolution shares = resolve({.size = percent(90), .max = percent(50)}, kTotal, kFree);
  check_one(shares, Severity::warning, "pool.size");
  CHECK(shares.pool.size == 40_GiB);

  const Resolution growth = resolve({.size = bytes(1_GiB), .max = bytes(1_GiB), .growth = {2_GiB, 0}}, kTotal, kFree);
  check_one(growth, Severity::warning, "pool.growth");
  CHECK(growth.pool.options.growth.step == 1_GiB);

  const Resolution size_above_card = resolve({.size = bytes(100'000'000'000)}, kTotal, kFree);
  check_one(size_above_card, Severity::warning, "pool.size");
  CHECK(size_above_card.pool.size == kFree - 512_MiB - (kFree - 512_MiB) % kHandleGranularity);

  const Resolution max_above_card = resolve({.max = bytes(100_GiB)}, kTotal, kFree);
  check_one(max_above_card, Severity::warning, "pool.max");
  CHECK(max_above_card.pool.max == kTotal - 512_MiB);

  const Resolution headroom = resolve({.headroom = bytes(kTotal)}, kTotal, kFree);
  check_one(headroom, Severity::warning, "pool.headroom");
  CHECK(headroom.pool.headroom == 512_MiB);
  CHECK(headroom.pool.size > 0);

  const Resolution handle = resolve({.size = {}, .max = bytes(512_MiB), .handle = {1_GiB}}, kTotal, kFree);
  check_one(handle, Severity::warning, "pool.handle");
  CHECK(handle.pool.handle == 0);
}

TEST_CASE("all zero grows from nothing", "[config][case-39]") {
  const Resolution r = resolve({.size = {}, .growth = {}, .headroom = {}}, kTotal, kFree);
  CHECK(r.diagnostics.empty());
  CHECK(r.pool.size == 0);
  CHECK(r.pool.max == kTotal);
  CHECK(r.pool.headroom == 0);
}

TEST_CASE("the whole card is clamped by the headroom", "[config][case-36]") {
  const Resolution r = resolve({.size = percent(100)}, kTotal, kTotal);
  check_one(r, Severity::warning, "pool.size");
  CHECK(r.pool.size == kTotal - 512_MiB);
  CHECK(r.pool.max == kTotal - 512_MiB);
}

TEST_CASE("a default that meets a lower max is only a note", "[config][case-39]") {
  const Resolution r = resolve({.max = bytes(8_GiB)}, kTotal, kFree);
  check_one(r, Severity::note, "pool.size");
  CHECK(r.pool.size == 8_GiB);
}

TEST_CASE("a busy card shrinks the reservation, never the limit", "[config][case-39]") {
  const Resolution less = resolve({.size = bytes(20_GiB)}, kTotal, 10_GiB);
  check_one(less, Severity::warning, "pool.size");
  CHECK(less.pool.size == 10_GiB - 512_MiB);
  CHECK(less.pool.max == kTotal - 512_MiB);

  const Resolution none = resolve({}, kTotal, 100_MiB);
  check_one(none, Severity::warning, "pool.size");
  CHECK(none.pool.size == 0);
  CHECK(none.pool.max == kTotal - 512_MiB);
}

TEST_CASE("no pool is never silent", "[config][case-39]") {
  check_one(resolve({.strategy = Strategy::off}, kTotal, kFree), Severity::note, "pool.strategy");
  check_one(resolve({.strategy = Strategy::passthrough}, kTotal, kFree), Severity::note, "pool.strategy");
  check_one(resolve({}, 0, 0), Severity::warning, "pool");
  const Resolution growing = resolve({.strategy = Strategy::auto_growth}, kTotal, kFree);
  CHECK(growing.diagnostics.empty());
  CHECK(growing.pool.size == 0);
  CHECK(growing.pool.max > 0);
}

TEST_CASE("small cards", "[config][case-39]") {
  const Resolution slice = resolve({}, 5_GiB, 5_GiB);
  CHECK(slice.pool.size > 4_GiB);
  const Resolution tiny = resolve({}, 256_MiB, 256_MiB);
  CHECK(tiny.pool.headroom == 32_MiB);
  CHECK(tiny.pool.size == 224_MiB);
  const Resolution one = resolve({}, 2_MiB, 2_MiB);
  CHECK(one.pool.max == 2_MiB);
}

TEST_CASE("whatever is asked for, the amounts agree with each other", "[config][case-39]") {
  std::mt19937_64 random{39};
  const auto amount = [&random]() -> SizeOrShare {
    if (random() % 3 == 0) return percent(static_cast<std::uint32_t>(1 + random() % 100));
    return bytes((random() % (Bytes{1} << (10 + random() % 51))));
  };
  for (int round = 0; round < 20'000; ++round) {
    const Bytes total = random() % 200_GiB;
    const Bytes free = random() % (total + 1);
    PoolOptions options{.size = amount(), .max = amount(), .growth = {amount().bytes, 0}, .headroom = amount()};
    options.handle.bytes = random() % 4 * 32_MiB;
    const Resolution r = resolve(options, total, free);
    CAPTURE(total, free, test::messages(r.diagnostics));
    if (r.pool.max == 0) {
      REQUIRE(total < kHandleGranularity);
      REQUIRE_FALSE(r.diagnostics.empty());
      continue;
    }
    REQUIRE(r.pool.size <= r.pool.max);
    REQUIRE(r.pool.size % kHandleGranularity == 0);
    REQUIRE(r.pool.max % kHandleGranularity == 0);
    REQUIRE(r.pool.max <= total);
    REQUIRE((r.pool.size == 0 || r.pool.size + r.pool.headroom <= free));
    REQUIRE(r.pool.handle <= r.pool.max);
    REQUIRE(r.pool.growth_from(r.pool.size) <= r.pool.max - r.pool.size);
    for (const Diagnostic& diagnostic : r.diagnostics) REQUIRE(test::is_one_printable_line(diagnostic.message()));
  }
}
