// See pages.h.
#include "cli/pages.h"

#include <unistd.h>

#include <charconv>

#include "cli/console.h"
#include "config/load.h"
#include "config/text.h"
#include "live/identity.h"

namespace gpupool::cli {

std::string page_folder() { return load(environ).options.stats.pages; }

PageCopy page_of_process(const std::string& text) {
  std::uint64_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  const bool number = error == std::errc{} && end == text.data() + text.size();
  PagesFound found = find_pages(page_folder());
  for (const std::string& problem : found.problems) note(escaped(problem, problem.size()));
  std::vector<PageCopy> matches;
  bool gone = false;
  for (PageCopy& copy : found.pages) {
    const std::string name = copy.path.substr(copy.path.rfind('/') + 1);
    if (name != text && (!number || copy.page->identity.pid != pid)) continue;
    if (copy.life == Life::kGone)
      gone = true;
    else
      matches.push_back(std::move(copy));
  }
  // A number means a process as seen from here; in containers there may be others of that number.
  const std::uint64_t here = own_pid_namespace();
  if (matches.size() > 1)
    std::erase_if(matches, [here](const PageCopy& copy) { return copy.page->identity.pid_namespace != here; });
  if (matches.size() == 1) return std::move(matches.front());
  if (gone) throw Problem(Exit::input, "process " + in_quotes(text) + " is gone; gpupool report --leftover shows it");
  throw Problem(Exit::input, "no process " + in_quotes(text) +
                                 " of this user has a pool with a live page; gpupool top shows which have");
}

std::string reply_text(const Answer& answer) {
  switch (answer.reply) {
    case Reply::kGiven:
      return "gave back " + readable(answer.given);
    case Reply::kNotYet:
      return "did not answer in time; it may still give memory back";
    case Reply::kNobody:
      return "answers nobody: it is ending, or could have no thread for that";
    case Reply::kTooMany:
      return "has too many requests to answer";
    case Reply::kNoPage:
      return "has ended meanwhile";
  }
  return "";
}

}  // namespace gpupool::cli
