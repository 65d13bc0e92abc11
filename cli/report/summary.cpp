// See summary.h.
#include "cli/report/summary.h"

#include <algorithm>

namespace gpupool::cli {

std::vector<RankRow> rank_rows(std::span<const ProcessReport> reports) {
  std::vector<RankRow> rows;
  for (const ProcessReport& report : reports) {
    if (report.pools.empty()) rows.push_back({&report, nullptr});
    for (const PoolReport& pool : report.pools) rows.push_back({&report, &pool});
  }
  return rows;
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all{
      {"reserved.peak", "bytes", [](const PoolReport& pool) { return double(pool.reserved.peak); }, "reserved"},
      {"live.peak", "bytes", [](const PoolReport& pool) { return double(pool.live.peak); }, "live"},
      {"needed.peak", "bytes", [](const PoolReport& pool) { return double(pool.needed.peak); }, "needed"},
      {"passed_live.peak", "bytes", nullptr},
      {"waste", "share", [](const PoolReport& pool) { return pool.waste; }, "waste"},
      {"requests", "count", [](const PoolReport& pool) { return double(pool.requests); }, "requests"},
      {"fences", "count", [](const PoolReport& pool) { return double(pool.fences); }, "fences"},
      {"host_waits", "count", [](const PoolReport& pool) { return double(pool.host_waits); }, "host_waits"},
      {"migrations", "count", [](const PoolReport& pool) { return double(pool.migrations); }, "migrations"},
      {"oom", "count", [](const PoolReport& pool) { return double(pool.oom_capacity + pool.oom_fragmentation); },
       "oom_capacity"},
  };
  return all;
}

std::optional<double> Column::value(const RankRow& one) const {
  if ((one.pool == nullptr) != (of_pool == nullptr)) return std::nullopt;
  if (one.pool == nullptr) return double(one.process->passed_live_peak);
  return one.pool->knows(row) ? std::optional{of_pool(*one.pool)} : std::nullopt;
}

Spread spread_of(const std::vector<RankRow>& rows, const Column& column) {
  Spread spread;
  for (const RankRow& row : rows) {
    const std::optional<double> value = column.value(row);
    if (!value) continue;
    spread.sum += *value;
    spread.least = spread.worst == nullptr ? *value : std::min(spread.least, *value);
    if (spread.worst != nullptr && *value <= spread.most) continue;
    spread.most = *value;
    spread.worst = &row;
  }
  return spread;
}

std::vector<CardSum> card_sums(const std::vector<RankRow>& rows) {
  std::vector<CardSum> sums;
  for (const RankRow& row : rows) {
    if (row.pool == nullptr) continue;
    auto found = std::ranges::find_if(
        sums, [&](const CardSum& sum) { return sum.host == row.process->host && sum.uuid == row.pool->uuid; });
    if (found == sums.end()) {
      sums.push_back({row.process->host, row.pool->uuid, row.pool->card, 0, 0, 0});
      found = std::prev(sums.end());
    }
    ++found->processes;
    found->reserved_peak += row.pool->reserved.peak;
    found->live_peak += row.pool->live.peak;
  }
  return sums;
}

}  // namespace gpupool::cli
