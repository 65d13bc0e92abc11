// The forms in which a look is printed: a table for people, JSON, OpenMetrics. Pure functions.
#pragma once
#include <string>
#include <vector>

#include "cli/top/rows.h"

namespace gpupool::cli {

/// Heads, rows and a line for each card.
std::string top_table(const std::vector<TopRow>& rows, Letters letters);
/// One row of it, cut to no width; and the heads, with a mark at the column that it is sorted by.
std::string table_line(const TopRow& row, Letters letters);
std::string table_heads(const TopColumn* sorted_by);
std::vector<std::string> card_lines(const std::vector<TopRow>& rows);

std::string top_json(const std::vector<PageCopy>& pages, const std::vector<TopRow>& rows);

/// https://github.com/prometheus/OpenMetrics, 1.0. Only running processes; each metric has its unit in its name.
std::string openmetrics(const std::vector<PageCopy>& pages);

/// Stays on the terminal until the user leaves; false where this build or this terminal cannot be drawn on.
bool top_screen(const std::string& folder, unsigned interval_ms);

}  // namespace gpupool::cli
