// Life of contexts, and each thread's stack of them. Guarded by the big lock (the stacks belong to their threads).
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>

#include "tests/simcuda/state.h"

namespace gpupool::sim {

// A thread's contexts; the last one is current. May hold contexts that are gone. Needs no destructor: a program may
// call the driver after its thread's objects are gone, from its own static destructors.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  Context* back() const { return entries_[size_ - 1]; }
  void push_back(Context* context) {
    if (size_ == entries_.size()) std::abort();
    entries_[size_++] = context;
  }
  void pop_back() { --size_; }

 private:
  std::array<Context*, 128> entries_{};
  std::size_t size_ = 0;
};

// The calling thread's.
ContextStack& context_stack();

Context* make_context(Device& device, unsigned flags);
// Gives a primary or new context its default streams.
void start_context(Context& context);
// Runs what can run, then takes back everything that the context owns: streams, events, memory (not VMM memory), pools'
// blocks.
void empty_context(Context& context);
void destroy_context(Context* context);

// What holds a primary context alive: the program's retains, and each green context.
CUresult primary_retain(CUcontext* out, CUdevice ordinal);
CUresult primary_release(CUdevice ordinal);

// Takes the context's plain, managed, host and imported memory back. (memory.cpp)
void release_memory_of(Context& context);

}  // namespace gpupool::sim
