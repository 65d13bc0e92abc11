// See forms.h: in place of screen.cpp where this build has no ncurses.
#include "cli/top/forms.h"

namespace gpupool::cli {

void top_screen(const std::string&, unsigned) {}

bool has_screen() { return false; }

}  // namespace gpupool::cli
