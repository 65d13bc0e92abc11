// Life of contexts, and each thread's stack of them. Guarded by the big lock (the stacks belong to their threads).
#pragma once

#include <vector>

#include "tests/simcuda/state.h"

namespace gpupool::sim {

// The calling thread's stack; the last one is current. May hold contexts that are gone.
std::vector<Context*>& context_stack();

Context* make_context(Device& device, unsigned flags);
// Gives a primary or new context its default streams.
void start_context(Context& context);
// Runs what can run, then takes back everything that the context owns: streams, events, memory (not VMM memory), pools'
// blocks.
void empty_context(Context& context);
void destroy_context(Context* context);

// Takes the context's plain, managed, host and imported memory back. (memory.cpp)
void release_memory_of(Context& context);

}  // namespace gpupool::sim
