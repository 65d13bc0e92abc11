// `gpupool trim`: asks one process for its free memory, through its live page.
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/pages.h"
#include "cli/replay/setup.h"

namespace gpupool::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

}  // namespace

Exit trim_verb(const Arguments& arguments) {
  GiveBack request;
  if (arguments.has("--to")) request.keep = bytes_of_text("--to", arguments.value("--to"));
  const PageCopy page = page_of_process(arguments.operands.front());
  const Answer answer = ask_for_memory(page.path, request, kPatience);
  const bool answered = answer.reply == Reply::kGiven;
  if (arguments.has("--json")) {
    print(
        nlohmann::ordered_json{{"pid", page.page->identity.pid}, {"answered", answered}, {"given", answer.given}}.dump(
            2) +
        "\n");
  } else {
    print("process " + std::to_string(page.page->identity.pid) + " " + reply_text(answer) + "\n");
  }
  return answered ? Exit::ok : Exit::warning;
}

}  // namespace gpupool::cli
