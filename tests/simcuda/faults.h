// Faults on demand: "the third cuMemCreate fails", "this event never completes". One entry is SYMBOL:WHICH=RESULT,
// entries are separated by ';'. WHICH is a number (1 is the next call), a range 5-9, or * for all; RESULT is a CUresult
// as a number, or "never" for an event record that succeeds but never completes. Called with the big lock held.
#pragma once

#include <optional>
#include <string>

#include "tests/simcuda/call.h"

namespace gpupool::sim {

// Replaces all entries and starts counting anew; false (and no entries) if the text cannot be read.
bool set_faults(const std::string& text);

// Counts one call of `symbol`. The result that replaces the call, if any.
std::optional<CUresult> next_fault(Symbol symbol);

// Whether the call that next_fault counted last asked for an event that never completes; asking clears it.
bool take_never_completes();

}  // namespace gpupool::sim
