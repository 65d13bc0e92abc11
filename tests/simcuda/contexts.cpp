// See contexts.h.
#include "tests/simcuda/contexts.h"

#include "tests/simcuda/capture.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {

ContextStack& context_stack() {
  static thread_local ContextStack stack;
  return stack;
}

CUresult current_context_even_lost(Context*& out) {
  const auto& stack = context_stack();
  if (stack.empty() || !stack.back()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!state().contexts.valid(stack.back()) || !stack.back()->legacy) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  out = stack.back();
  return CUDA_SUCCESS;
}

CUresult current_context(Context*& out) {
  if (const CUresult e = current_context_even_lost(out)) return e;
  return root_of(*out).error;
}

Context* make_context(Device& device, unsigned flags) {
  Context* context = state().contexts.make();
  context->device = &device;
  context->flags = flags;
  start_context(*context);
  return context;
}

void start_context(Context& context) {
  context.id = state().next_id++;
  context.error = CUDA_SUCCESS;
  context.legacy = make_stream(context, StreamKind::kLegacy, CU_STREAM_DEFAULT, 0);
}

void empty_context(Context& context) {
  std::vector<Context*> green;
  for (Context* other : state().contexts.all()) {
    if (other->parent == &context) green.push_back(other);
  }
  for (Context* other : green) destroy_context(other);
  abandon(context);
  drop_streams(context);
  std::vector<CUevent> events;
  for (CUevent event : state().events.all()) {
    if (event->context == &context) events.push_back(event);
  }
  for (CUevent event : events) state().events.drop(event);
  if (!context.parent) release_memory_of(context);
  context.barrier.reset();
  context.peers.clear();
  context.limits.clear();
  for (Context* other : state().contexts.all()) other->peers.erase(&context);
}

void destroy_context(Context* context) {
  empty_context(*context);
  state().contexts.drop(context);
}

}  // namespace gpupool::sim
