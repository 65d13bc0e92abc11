// See forms.h: the table.
#include <algorithm>

#include "cli/console.h"
#include "cli/top/forms.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr std::size_t kSparkWidth = 20;

std::string aligned(std::string_view text, const TopColumn& column) {
  std::string cell = padded(text, column.width);
  if (column.to_the_right && text.size() < column.width)
    cell = std::string(column.width - text.size(), ' ') + std::string{text};
  return cell + " ";
}

}  // namespace

std::string table_heads(const TopColumn* sorted_by) {
  std::string line;
  for (const TopColumn& column : top_columns()) {
    line += aligned(std::string{column.name} + (&column == sorted_by ? "*" : ""), column);
  }
  return line + "LIVE OVER TIME";
}

std::string table_line(const TopRow& row, Letters letters) {
  std::string line;
  for (const TopColumn& column : top_columns()) line += aligned(column.text(row), column);
  return trimmed(line + sparkline(row.live_over_time, kSparkWidth, letters));
}

std::vector<std::string> card_lines(const std::vector<TopRow>& rows) {
  struct Sum {
    const TopRow* first;
    std::uint64_t processes = 0;
    std::uint64_t reserved = 0;
    std::uint64_t live = 0;
  };
  std::vector<Sum> sums;
  for (const TopRow& row : rows) {
    if (row.uuid.empty() || row.gone) continue;
    auto sum = std::ranges::find_if(sums, [&](const Sum& other) { return other.first->uuid == row.uuid; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), Sum{&row});
    ++sum->processes;
    sum->reserved += row.reserved;
    sum->live += row.live;
  }
  std::vector<std::string> lines;
  for (const Sum& sum : sums) {
    lines.push_back("card " + sum.first->uuid + " (" + sum.first->card + "): " + std::to_string(sum.processes) +
                    (sum.processes == 1 ? " pool" : " pools") + ", reserved " + readable(sum.reserved) + ", live " +
                    readable(sum.live));
  }
  return lines;
}

std::string top_table(const std::vector<TopRow>& rows, Letters letters) {
  std::string text = coloured(table_heads(nullptr), Colour::strong, Stream::out) + "\n";
  for (const TopRow& row : rows) text += table_line(row, letters) + "\n";
  for (const std::string& line : card_lines(rows)) text += line + "\n";
  return text;
}

}  // namespace gpupool::cli
