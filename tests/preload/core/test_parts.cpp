// The small parts: size histogram, curve, pass-through table, advice, the two renderings of a report.
#include <nlohmann/json.hpp>

#include "live/report.h"
#include "pool/size_histogram.h"
#include "preload/curve.h"
#include "preload/passthrough.h"
#include "preload/shortage.h"
#include "preload/trace_clock.h"
#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("sizes fall into their power of two") {
  SizeHistogram sizes;
  for (std::uint64_t bytes : {1u, 2u, 3u, 4u, 1023u, 1024u}) sizes.add(bytes);
  CHECK(sizes.count(0) == 1);
  CHECK(sizes.count(1) == 2);
  CHECK(sizes.count(2) == 1);
  CHECK(sizes.count(9) == 1);
  CHECK(sizes.count(10) == 1);
  CHECK(sizes.bytes() == 1 + 2 + 3 + 4 + 1023 + 1024);
}

TEST_CASE("pass-through memory is live until it is freed") {
  PassedBytes shown;
  PassThrough direct(shown);
  CHECK(direct.empty());
  direct.add(0x1000, {100, 0});
  direct.add(0x2000, {50, 7});
  CHECK(direct.live() == 150);
  CHECK(direct.remove(0x1000).bytes == 100);
  CHECK(direct.remove(0x1000).bytes == 0);
  CHECK(direct.live() == 50);
  CHECK(shown.peak == 150);
}

TEST_CASE("a change of the live bytes that the page has missed is not missed for long") {
  PassedBytes shown;
  PassThrough direct(shown);
  direct.add(0x1000, {100, 0});
  shown.live = 0;
  CHECK(direct.remove(0x1000).bytes == 100);
  CHECK(direct.live() == 0);
}

TEST_CASE("times are near in either order, and far when the counter has begun anew") {
  constexpr std::uint64_t kSome = 2000;
  const std::uint64_t seen = std::uint64_t{1} << 50;
  CHECK(TraceClock::are_near(seen, seen, kSome));
  CHECK(TraceClock::are_near(seen + kSome, seen, kSome));
  CHECK(TraceClock::are_near(seen - kSome, seen, kSome));
  CHECK_FALSE(TraceClock::are_near(seen + kSome + 1, seen, kSome));
  CHECK_FALSE(TraceClock::are_near(seen - kSome - 1, seen, kSome));
  CHECK_FALSE(TraceClock::are_near(5, seen, kSome));
  CHECK_FALSE(TraceClock::are_near(seen, 0, kSome));
}

TEST_CASE("each look at the clock is left in the page, whether a point is due or not") {
  auto shown = std::make_unique<PageCurve>();
  Counter seen_ms;
  auto curve = std::make_unique<Curve>(*shown, seen_ms, 3'600'000);
  curve->add({});
  while (seen_ms.get() < 10) CHECK_FALSE(curve->due_now());
  CHECK(shown->count == 1);
}

TEST_CASE("a full curve keeps its ends and halves its density") {
  auto shown = std::make_unique<PageCurve>();
  Counter seen_ms;
  auto curve = std::make_unique<Curve>(*shown, seen_ms, 0);
  for (std::uint64_t i = 0; i < Curve::kMostPoints + 10; ++i) curve->add({.reserved = i, .live = i});
  REQUIRE(shown->count == Curve::kMostPoints / 2 + 10);
  CHECK(shown->points[0].reserved == 0);
  CHECK(shown->points[shown->count - 1].reserved == Curve::kMostPoints + 9);
}

TEST_CASE("the advice is the need and 10 to 30 percent, in whole steps, within the limit") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  CHECK(advise(0, 0, kGiB).size == 0);
  CHECK(advise(100 << 20, 100 << 20, 0).size == 128 << 20);
  const auto tight = advise(10 * kGiB, 10 * kGiB, 0).size;
  const auto loose = advise(10 * kGiB, 5 * kGiB, 0).size;
  CHECK(tight == 11 * kGiB);
  CHECK(loose == 13 * kGiB);
  CHECK(advise(10 * kGiB, 10 * kGiB, 10 * kGiB).size == 10 * kGiB);
}

TEST_CASE("pool.reuse=sync is hinted at where a cudaFree did not wait and the card could write host memory") {
  CHECK(hint_at_sync(0, 4096).empty());
  CHECK(hint_at_sync(7, 0).empty());
  CHECK(hint_at_sync(7, 4096).find("7 cudaFree") == 0);
}

TEST_CASE("the table and the file render the same rows") {
  Report report;
  ReportSection pool{.list = "pools", .title = "device 0"};
  pool.rows.push_back({"live.peak", ReportUnit::kBytes, std::uint64_t{3} << 30, "", Audience::kEveryone});
  pool.rows.push_back({"frees", ReportUnit::kCount, std::uint64_t{5}, "", Audience::kFile});
  pool.rows.push_back({"waste", ReportUnit::kShare, 0.25, "", Audience::kEveryone});
  pool.rows.push_back({"fences", ReportUnit::kCount, std::uint64_t{0}, "", Audience::kEveryone});
  pool.size_counts = {0, 2};
  report.sections.push_back(pool);
  report.curve.push_back({10, 20, 30, 1, 2, 3, 4});
  const std::string text = report_text(report);
  CHECK(text.find("3 GiB") != std::string::npos);
  CHECK(text.find("25.0 %") != std::string::npos);
  CHECK(text.find("frees") == std::string::npos);
  CHECK(text.find("fences") == std::string::npos);
  const auto file = nlohmann::json::parse(report_json(report));
  CHECK(file["pools"][0]["frees"] == 5);
  CHECK(file["pools"][0]["fences"] == 0);
  CHECK(file["pools"][0]["sizes"] == nlohmann::json::parse("[[2,2]]"));
  CHECK(file["curve"] == nlohmann::json::parse("[[10,20,30,1,2,3,4]]"));
  CHECK(file["curve"][0].size() == file["curve_columns"].size());
}

TEST_CASE("a refusal says what it goes by and which setting to change") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  Shortage shortage{.request = 2 * kGiB,
                    .live = 7 * kGiB,
                    .reserved = 8 * kGiB,
                    .limit = 8 * kGiB,
                    .largest_hole = kGiB,
                    .headroom = kGiB,
                    .others = kGiB / 2,
                    .total = 16 * kGiB};
  const auto says = [&](const char* part) { return out_of_memory_text(shortage).find(part) != std::string::npos; };
  CHECK(out_of_memory_text(shortage) ==
        "out of memory on device 0 (capacity): request 2 GiB, live 7 GiB, reserved 8 GiB, limit 8 GiB, largest hole 1 "
        "GiB, "
        "headroom 1 GiB, others and the driver hold 512 MiB; raise pool.max (docs/out-of-memory.md)");
  shortage.limit = 15 * kGiB;
  shortage.others = 8 * kGiB;
  CHECK(says("end what else runs on the card"));
  shortage.others = kGiB / 2;
  shortage.live = 14 * kGiB;
  CHECK(says("use less memory, or let the host stand in with pool.overflow=host"));
  shortage.overflow = kGiB;
  CHECK(says("or raise pool.overflow_max"));
  shortage.is_capacity = false;
  CHECK(says("(fragmentation)"));
  CHECK(says("set pool.handle=2MiB"));
}
