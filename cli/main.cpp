// The command: parses, acts, and turns whatever goes wrong into one line and an exit status.
#include <exception>
#include <new>

#include "cli/console.h"
#include "cli/manual.h"
#include "cli/parse.h"

namespace {

using namespace gpupool::cli;

int act(int count, char** words, std::string& place) {
  const Parsed parsed = parse({words + 1, words + count});
  if (parsed.verb != nullptr) place += " " + std::string{parsed.verb->name};
  if (parsed.help) {
    print(parsed.verb ? verb_help(*parsed.verb) : command_help());
    return static_cast<int>(Exit::ok);
  }
  if (parsed.version) {
    print("gpupool " + version() + "\n");
    return static_cast<int>(Exit::ok);
  }
  return static_cast<int>(parsed.verb->act(parsed.arguments));
}

}  // namespace

int main(int count, char** words) {
  std::string place;
  const auto fail = [&](Exit status, const char* message) {
    const std::string line = coloured("error:", Colour::bad, Stream::err) + " " + message;
    note((place.empty() ? "" : place.substr(1) + ": ") + line);
    return static_cast<int>(status);
  };
  try {
    return act(count, words, place);
  } catch (const Problem& problem) {
    return fail(problem.status(), problem.what());
  } catch (const std::bad_alloc&) {
    return fail(Exit::input, "not enough memory on this host");
  } catch (const std::exception& error) {
    return fail(Exit::broken, error.what());
  }
}
