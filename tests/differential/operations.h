// The random program's steps, one function for each row of kinds.def.
#pragma once

#include "tests/differential/world.h"

namespace differential {

#define KIND(name, weight, care, reach) void name(World& world);
#include "tests/differential/kinds.def"
#undef KIND

/// The default pool, after a start or a reset.
void meet_default_pool(World& world);

}  // namespace differential
