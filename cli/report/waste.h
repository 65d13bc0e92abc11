// Where memory of the card went that no request used: what `report` lists first. Pure functions over reports.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/summary.h"

namespace gpupool::cli {

enum class WasteKind {
  idle,      // reserved at the peak, and never needed
  between,   // needed, and not in blocks: holes that nothing fitted
  rounding,  // in blocks, and not asked for
};
std::string_view waste_text(WasteKind kind);

struct WasteRow {
  const RankRow* row = nullptr;
  WasteKind kind = WasteKind::idle;
  std::uint64_t bytes = 0;
  std::string mend;  // the setting to change; empty where none would help
};

/// Every loss of at least a megabyte, the largest first. Differences of peaks, which need not have been at once.
std::vector<WasteRow> top_waste(const std::vector<RankRow>& rows);

}  // namespace gpupool::cli
