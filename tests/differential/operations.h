// The random program's steps by subject. Each makes one or a few calls and prints a line for each; with nothing to act
// on it prints nothing.
#pragma once

#include "tests/differential/world.h"

namespace differential {

// operations_memory.cpp
void allocate(World& world);
void allocate_rows(World& world);
void allocate_ordered(World& world);
void allocate_oddly(World& world);
void allocate_elsewhere(World& world);
void free_block(World& world);
void free_wrongly(World& world);
void use_contents(World& world);

// operations_questions.cpp
void ask_range(World& world);
void ask_attributes(World& world);
void ask_free_memory(World& world);
void ask_for_handles(World& world);

// operations_streams.cpp
void change_streams(World& world);
void synchronize(World& world);
void capture(World& world);

// operations_pools.cpp
void change_pools(World& world);
void ask_pools(World& world);
/// The default pool, after a start or a reset.
void meet_default_pool(World& world);

// operations_contexts.cpp
void use_second_context(World& world);
void reset_device(World& world);
void act_without_context(World& world);

}  // namespace differential
