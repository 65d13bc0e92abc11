// Many ranks at once: for each number that matters the worst rank, the spread, and the sum on each card.
// Pure functions over reports.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/file.h"

namespace gpupool::cli {

/// One pool of one process, a row of the table. Processes without a pool have a row, too.
struct RankRow {
  const ProcessReport* process = nullptr;
  const PoolReport* pool = nullptr;  // null: the driver served everything
};
/// The rows point into the reports.
std::vector<RankRow> rank_rows(std::span<const ProcessReport> reports);

/// A column that is compared over ranks; the worst is the largest.
struct Column {
  std::string_view name;
  std::string_view unit;                      // bytes, count or share
  double (*of_pool)(const PoolReport& pool);  // null: of processes without a pool
  std::string_view row = {};                  // of stats.def, that it is made of

  /// Nothing where the row has no such value, or it was not recorded.
  std::optional<double> value(const RankRow& one) const;
};
const std::vector<Column>& columns();

struct Spread {
  double least = 0;
  double most = 0;
  double sum = 0;
  const RankRow* worst = nullptr;
};
/// Over the rows that have a value; worst is null where there is none.
Spread spread_of(const std::vector<RankRow>& rows, const Column& column);

struct CardSum {
  std::string host;
  std::string uuid;
  std::string card;
  std::uint64_t processes = 0;
  std::uint64_t reserved_peak = 0;
  std::uint64_t live_peak = 0;
};
/// By host and UUID, in the order in which they appear. Peaks of different processes are added, though they need not
/// have been at once.
std::vector<CardSum> card_sums(const std::vector<RankRow>& rows);

}  // namespace gpupool::cli
