// From what the user chose, resolved against a card, to what a tape is made with. The one place that knows both.
#pragma once

#include "config/options.h"
#include "pool/tape_types.h"

namespace gpupool {

TapeOptions tape_options_for(const ResolvedPool& pool);

}  // namespace gpupool
