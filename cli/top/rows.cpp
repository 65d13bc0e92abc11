// See rows.h.
#include "cli/top/rows.h"

#include <algorithm>
#include <cstdio>

#include "config/text.h"

namespace gpupool::cli {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", share * 100);
  return text;
}

// "2" before "10"; ranks are numbers in all launchers that we know.
bool by_number(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// 0.4, 37, 12.3k
std::string rate(double per_second) {
  char text[32];
  if (per_second < 10)
    std::snprintf(text, sizeof text, "%.1f", per_second);
  else if (per_second < 10'000)
    std::snprintf(text, sizeof text, "%.0f", per_second);
  else
    std::snprintf(text, sizeof text, "%.1fk", per_second / 1000);
  return text;
}

TopRow process_row(const PageCopy& copy, const Report& report) {
  TopRow row;
  row.page = last_part(copy.path);
  row.pid = copy.page->identity.pid;
  row.gone = copy.life == Life::kGone;
  row.executable = escaped(last_part(copy.page->identity.executable.get()));
  row.rank = escaped(copy.page->identity.rank.get());
  for (const CurvePoint& point : report.curve) row.live_over_time.push_back(point.live);
  return row;
}

double requests_a_second(const TopRow& row, const Look& before, std::uint64_t now_ms, std::size_t number,
                         std::uint64_t lived_ms) {
  const auto found = before.requests.find({row.page, number});
  const bool again = found != before.requests.end() && now_ms > before.ms;
  const std::uint64_t earlier = again ? std::min(found->second, row.requests) : 0;
  const std::uint64_t ms = again ? now_ms - before.ms : lived_ms;
  return ms == 0 ? 0 : double(row.requests - earlier) * 1000 / double(ms);
}

}  // namespace

TopRows top_rows(const std::vector<PageCopy>& pages, const Look& before, std::uint64_t now_ms) {
  TopRows top;
  top.look.ms = now_ms;
  for (const PageCopy& copy : pages) {
    const TopRow whole = process_row(copy, copy.report());
    std::size_t shown = 0;
    for (std::size_t number = 0; number < copy.pools.size(); ++number) {
      const PoolSlot& pool = *copy.pools[number];
      if (pool.state.get() != PoolSlot::kServing) continue;
      ++shown;
      TopRow& row = top.rows.emplace_back(whole);
      row.device = pool.device;
      row.uuid = escaped(pool.uuid.get());
      row.card = escaped(pool.card.get());
      row.reserved = pool.stats.reserved.current();
      row.live = pool.stats.live.current();
      row.limit = pool.limit;
      row.waste = share_lost(pool.stats.live.peak(), pool.stats.needed.peak());
      row.requests = pool.stats.requests.get();
      row.requests_per_second = requests_a_second(row, before, now_ms, number, copy.page->seen_ms.get());
      top.look.requests[{row.page, number}] = row.requests;
    }
    if (shown == 0) {
      TopRow& row = top.rows.emplace_back(whole);
      row.reserved = row.live = copy.page->passed.live.load();
    }
  }
  return top;
}

const std::vector<TopColumn>& top_columns() {
  static const std::vector<TopColumn> all{
      {"PID", 8, true, [](const TopRow& row) { return std::to_string(row.pid); },
       [](const TopRow& a, const TopRow& b) { return a.pid < b.pid; }},
      {"RANK", 5, true, [](const TopRow& row) { return row.rank; },
       [](const TopRow& a, const TopRow& b) { return by_number(a.rank, b.rank); }},
      {"DEV", 4, true,
       [](const TopRow& row) { return row.uuid.empty() ? std::string{"-"} : std::to_string(row.device); },
       [](const TopRow& a, const TopRow& b) { return a.device < b.device; }},
      {"RESERVED", 10, true, [](const TopRow& row) { return readable(row.reserved); },
       [](const TopRow& a, const TopRow& b) { return a.reserved > b.reserved; }},
      {"LIVE", 10, true, [](const TopRow& row) { return readable(row.live); },
       [](const TopRow& a, const TopRow& b) { return a.live > b.live; }},
      {"FREE", 10, true, [](const TopRow& row) { return readable(row.free()); },
       [](const TopRow& a, const TopRow& b) { return a.free() > b.free(); }},
      {"WASTE", 7, true, [](const TopRow& row) { return percent(row.waste); },
       [](const TopRow& a, const TopRow& b) { return a.waste > b.waste; }},
      {"REQ/S", 8, true, [](const TopRow& row) { return row.gone ? "-" : rate(row.requests_per_second); },
       [](const TopRow& a, const TopRow& b) { return a.requests_per_second > b.requests_per_second; }},
      {"PROGRAM", 16, false, [](const TopRow& row) { return row.executable + (row.gone ? " (killed)" : ""); },
       [](const TopRow& a, const TopRow& b) { return a.executable < b.executable; }},
  };
  return all;
}

std::string sparkline(const std::vector<std::uint64_t>& values, std::size_t width, Letters letters) {
  static constexpr std::string_view kAscii[] = {" ", ".", ":", "-", "=", "+", "*", "#"};
  static constexpr std::string_view kUnicode[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr double kSteps = 7;
  const std::size_t count = values.size();
  const std::uint64_t most = count == 0 ? 0 : *std::ranges::max_element(values);
  std::string text;
  for (std::size_t i = 0; i < std::min(width, count); ++i) {
    // Each character is the largest value of its share of the time.
    const std::size_t from = count <= width ? i : i * count / width;
    const std::size_t to = count <= width ? i + 1 : (i + 1) * count / width;
    const std::uint64_t value = *std::max_element(values.begin() + long(from), values.begin() + long(to));
    const auto step = std::size_t(most == 0 ? 0 : double(value) / double(most) * kSteps);
    text += letters == Letters::ascii ? kAscii[step] : kUnicode[step];
  }
  return text;
}

}  // namespace gpupool::cli
