// `gpupool run`: puts the preload and the settings into the environment and becomes the program.
#include "cli/console.h"
#include "cli/launch.h"

namespace gpupool::cli {

Exit run_verb(const Arguments& arguments) {
  Environment environment = own_environment();
  prepare(environment, "run", arguments);
  if (arguments.has("--unify")) {
    for (const std::string& line : unify(environment)) note(line);
  }
  become(arguments.program, environment);
}

}  // namespace gpupool::cli
