// `gpupool report`: one process in full, or many ranks side by side; on the terminal, as JSON, or as a page.
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/report/file.h"
#include "cli/report/render.h"

namespace gpupool::cli {

Exit report_verb(const Arguments& arguments) {
  std::vector<ProcessReport> reports;
  for (const std::string& file : arguments.operands) reports.push_back(read_report(file));
  const std::vector<RankRow> rows = rank_rows(reports);
  if (arguments.has("--html")) {
    write_new_file(arguments.value("--html"), report_page(reports));
    if (!has_chart_library())
      note("this gpupool was built without its chart library: the page has tables and no curve");
    if (!arguments.has("--json")) return Exit::ok;
  }
  if (arguments.has("--json")) {
    print(ranks_json(rows).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    print(reports.size() == 1 ? process_text(reports.front()) : ranks_text(rows));
  }
  return Exit::ok;
}

}  // namespace gpupool::cli
