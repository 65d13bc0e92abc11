// The renderings of reports: text for a terminal, JSON for programs, one page for a browser.
// Pure functions; text from a report is escaped in each of them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/report/summary.h"
#include "cli/report/timeline.h"

namespace gpupool::cli {

/// "3/0": rank and device.
std::string rank_of(const RankRow& row);

/// One process in full.
std::string process_text(const ProcessReport& report);
/// Ranks side by side: each number's worst rank, its spread, sums of each card, and the largest waste.
std::string ranks_text(const std::vector<RankRow>& rows);
nlohmann::ordered_json ranks_json(const std::vector<RankRow>& rows);

/// Whether the build found the library that draws the curve.
bool has_chart_library();

/// A page that needs nothing but itself: no network, no other file.
/// `timelines` are those of the reports, in their order.
std::string report_page(const std::vector<ProcessReport>& reports, const std::vector<Timeline>& timelines);

}  // namespace gpupool::cli
