// See leftover.h.
#include "cli/report/leftover.h"

#include "cli/console.h"
#include "cli/pages.h"
#include "config/text.h"

namespace gpupool::cli {

void Leftovers::find(std::vector<ProcessReport>& reports) {
  PagesFound found = find_pages(page_folder());
  for (const std::string& problem : found.problems) note(escaped(problem, problem.size()));
  for (PageCopy& copy : found.pages) {
    if (copy.life != Life::kGone) continue;
    if (used_device_memory(*copy.page, copy.slots()))
      reports.push_back(parse_report(copy.path, report_json(copy.report())));
    gone_.push_back(std::move(copy));
  }
}

void Leftovers::write(const std::string& folder) const {
  for (const PageCopy& copy : gone_) {
    if (!used_device_memory(*copy.page, copy.slots())) continue;
    const std::string wanted = folder + "/gpupool-" + std::to_string(copy.page->identity.pid) + ".json";
    const std::string name = write_report(wanted, report_json(copy.report()));
    if (name.empty()) throw Problem(Exit::output, escaped(wanted, wanted.size()) + " could not be written");
    note(escaped(name, name.size()) + " written");
  }
}

void Leftovers::remove() const {
  for (const PageCopy& copy : gone_) claim_page(copy);
}

}  // namespace gpupool::cli
