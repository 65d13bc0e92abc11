// See counted_run.h.
#include "cli/counted_run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

// "7.json", or "7.json.1" where the process has become another program; not a report that is being written.
bool is_report(const std::string& name) {
  const std::size_t end = name.find(".json");
  if (end == std::string::npos) return false;
  const std::string_view suffix = std::string_view{name}.substr(end + 5);
  return suffix.empty() || (suffix.size() < 5 && suffix.find_first_not_of(".0123456789") == std::string_view::npos);
}

}  // namespace

CountedRun::CountedRun(Environment& environment) {
  set(environment, {"stats.path", (folder_.path() / "%p.json").string()});
  set(environment, {"stats.pages", folder_.path().string()});
  set(environment, {"stats.summary", "off"});
}

std::vector<PageCopy> CountedRun::pages() const {
  std::vector<PageCopy> found = find_pages(folder_.path().string()).pages;
  std::erase_if(found, [](const PageCopy& copy) { return copy.life == Life::kGone; });
  return found;
}

std::vector<ProcessReport> CountedRun::reports() const {
  // Pages first: a process that ends between the two looks is in both then, and not in none.
  const std::vector<PageCopy> pages = find_pages(folder_.path().string()).pages;
  std::vector<ProcessReport> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path(), error)) {
    if (is_report(entry.path().filename().string())) found.push_back(read_report(entry.path().string()));
  }
  const auto ended = [&](std::uint64_t pid) {
    return std::ranges::find(found, pid, &ProcessReport::pid) != found.end();
  };
  std::vector<ProcessReport> left;
  for (const PageCopy& copy : pages) {
    if (copy.life == Life::kRunning && ended(copy.page->identity.pid)) continue;
    if (used_device_memory(*copy.page, copy.slots()))
      left.push_back(parse_report(copy.path, report_json(copy.report())));
  }
  std::ranges::move(left, std::back_inserter(found));
  std::ranges::stable_sort(found, {}, &ProcessReport::pid);
  return found;
}

}  // namespace gpupool::cli
