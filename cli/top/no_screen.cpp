// See forms.h: in place of screen.cpp where this build has no ncurses.
#include "cli/top/forms.h"

namespace gpupool::cli {

bool top_screen(const std::string&, unsigned) { return false; }

}  // namespace gpupool::cli
