// Time on the simulated device. Streams are queues of operations; an operation may run when it heads its queue,
// everything it waits for is done and it is ready. Nothing runs by itself: threads that wait run operations, in an
// order that the schedule picks, and while nothing can run they sleep until another thread submits more, or declare the
// program stuck.
//
// The late schedule is a detector: just before an operation reads memory, every queued write to that memory that is not
// ordered behind the reader is run (race.cpp). So a block that was reused without a fence reads as wrong data, every
// time. Everything here is called with the big lock held.
#pragma once

#include <functional>

#include "tests/simcuda/settings.h"
#include "tests/simcuda/state.h"

namespace gpupool::sim {

void set_schedule(Schedule schedule, uint64_t seed);

// Puts work behind what the stream already has, with the ordering rules of default streams and context barriers.
OpRef enqueue(Stream& stream, Work work);

// `op` will not run before `wait` is done.
void add_wait(Op& op, const OpRef& wait);

// Stands for all that was submitted to the context (and to its green contexts) so far.
OpRef everything_submitted(Context& context);

// All that is submitted to the context (and its green contexts) from now on waits for `op`.
void add_barrier(Context& context, const OpRef& op);

// A record that never completes.
OpRef never_done(Context& context);

bool is_done(const OpRef& op);

// Returns when it is done. Aborts the process, with a description, when that can never be.
void wait_until_done(const OpRef& op);
void wait_for_context(Context& context);

// Somebody asked whether it is done, for the n-th time: after a few times the device gets on with it.
bool poll(const OpRef& op, unsigned& polls);

// Runs what can run: all of it, or what `op` needs. Never waits.
void run_everything();
void run_towards(const OpRef& op);

// Drops what cannot run any more of a context that goes away, after running what can.
void abandon(Context& context);

uint64_t now();
uint64_t pending();

void for_each_stream(Context& context, const std::function<void(Stream&)>& visit);
// The primary context behind a green one, else itself: who owns errors and memory.
Context& root_of(Context& context);

// Used by race.cpp. Heads of queues that `op` needs first (or itself) and that can run now.
std::vector<OpRef> runnable_towards(const OpRef& op);
enum class Races { kExpose, kIgnore };
void step(const OpRef& op, Races races);
// Runs queued writes of other streams to what `reader` reads, where nothing orders them behind it.
void expose_races(const OpRef& reader);

}  // namespace gpupool::sim
