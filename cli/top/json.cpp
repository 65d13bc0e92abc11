// See forms.h: JSON. A process is its report, as at its exit, and what only a live one has.
#include <nlohmann/json.hpp>

#include "cli/top/forms.h"

namespace gpupool::cli {

std::string top_json(const std::vector<PageCopy>& pages, const std::vector<TopRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json root{{"processes", Json::array()}};
  for (const PageCopy& copy : pages) {
    Json process = Json::parse(report_json(copy.report()));
    process["page"] = copy.path;
    process["passed_live"] = copy.page->passed.live.load();
    Json rates = Json::array();
    for (const TopRow& row : rows) {
      if (!copy.path.ends_with("/" + row.page) || row.uuid.empty()) continue;
      rates.push_back({{"device", row.device}, {"uuid", row.uuid}, {"requests_per_second", row.requests_per_second}});
    }
    process["rates"] = std::move(rates);
    root["processes"].push_back(std::move(process));
  }
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpupool::cli
