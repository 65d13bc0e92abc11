// `gpupool top`: all pools of this user, once or as long as one likes.
#include <langinfo.h>
#include <unistd.h>

#include <clocale>

#include "cli/console.h"
#include "cli/pages.h"
#include "cli/top/forms.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

unsigned interval_of(const Arguments& arguments) {
  if (!arguments.has("--interval")) return 1000;
  Milliseconds interval{};
  if (parse(arguments.value("--interval"), interval) != Fault::none || interval.count() < 10 ||
      interval.count() > 3'600'000)
    throw Problem(Exit::usage,
                  "--interval: " + in_quotes(arguments.value("--interval")) + " is no time between 10ms and 1h");
  return static_cast<unsigned>(interval.count());
}

Letters letters_here() {
  std::setlocale(LC_ALL, "");
  return std::string_view{nl_langinfo(CODESET)} == "UTF-8" ? Letters::unicode : Letters::ascii;
}

}  // namespace

Exit top_verb(const Arguments& arguments) {
  arguments.allow_one_of({"--json", "--openmetrics"});
  const unsigned interval_ms = interval_of(arguments);
  const std::string folder = page_folder();
  const bool data = arguments.has("--json") || arguments.has("--openmetrics");
  const bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && has_terminal();
  if (!data && !arguments.has("--once") && terminal && top_screen(folder, interval_ms)) return Exit::ok;
  const PagesFound found = find_pages(folder);
  for (const std::string& problem : found.problems) note(escaped(problem, problem.size()));
  const std::vector<TopRow> rows = top_rows(found.pages, {}, 0).rows;
  if (arguments.has("--json"))
    print(top_json(found.pages, rows));
  else if (arguments.has("--openmetrics"))
    print(openmetrics(found.pages));
  else if (rows.empty())
    note(folder.empty() ? "stats.pages is empty: no process has a live page"
                        : "no process of this user has a pool with a live page in " + escaped(folder, folder.size()));
  else
    print(top_table(rows, letters_here()));
  return Exit::ok;
}

}  // namespace gpupool::cli
