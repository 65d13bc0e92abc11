// See streams.h.
#include "preload/streams.h"

#include <pthread.h>

#include <atomic>

#include "device/context.h"
#include "preload/boundary.h"
#include "preload/process.h"
#include "preload/thread_streams.h"

namespace gpupool {
namespace {

std::atomic<std::uint64_t> threads{0};
__thread std::uint64_t thread_serial = 0;

// A thread's default stream goes with the thread: its fragments then belong to anyone. Destructors of the program's own
// thread-local data may run after this one and free on that stream still: it is then a stream of another name.
void thread_ends(void* serial) {
  const Guard guard;
  const StreamRef stream = kThreadStream | reinterpret_cast<std::uintptr_t>(serial);
  try {
    process().registry.each([stream](Home& home) {
      if (home.serves()) home.tape()->stream_ending(stream);
    });
  } catch (...) {
    out_of_host_memory();
  }
  last_stream = {};
  thread_serial = 0;
}

StreamRef this_thread_stream() {
  static const struct Key {
    pthread_key_t key{};
    bool made;
    Key() : made(pthread_key_create(&key, thread_ends) == 0) {}
  } kKey;
  if (thread_serial == 0) {
    thread_serial = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    if (kKey.made) pthread_setspecific(kKey.key, reinterpret_cast<void*>(thread_serial));
  }
  return kThreadStream | thread_serial;
}

// The line without the cache. The default streams of another context than the home's, or of a green one, have no name
// on the tape.
Line line_of(Home& home, CUstream stream, CUcontext current) {
  if (is_default_stream(stream) && current != home.context()) return kContextLine;
  if (stream == CU_STREAM_PER_THREAD) return home.tape()->line_of(this_thread_stream(), true);
  const Line line = home.tape()->line_of(reinterpret_cast<StreamRef>(stream), false);
  if (!is_default_stream(stream)) process().registry.stream_used(home, stream);
  return line;
}

bool is_last(CUstream stream, CUcontext current, std::uint64_t now) {
  const LastStream& last = last_stream;
  return last.epoch == now && last.stream == stream && last.current == current;
}

}  // namespace

StreamSpot find_spot(const Guard& guard, CUstream stream, std::uint64_t bytes) {
  LastStream& last = last_stream;
  const DriverApi& api = setup().api;
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  const CUcontext current = is_default_stream(stream) ? current_context(api) : nullptr;
  if (is_last(stream, current, now) && last.own) return {last.home, last.line};
  const StreamHome where = home_of(api, stream);
  if (where.result != CUDA_SUCCESS || !where.context) return {};
  Home* home = process().registry.of_context(guard, where.context, bytes);
  if (!home) return {};
  last = {stream, current, now, home, line_of(*home, stream, current), true};
  return {home, last.line};
}

StreamSpot find_line(const Guard&, Home& home, CUstream stream) {
  LastStream& last = last_stream;
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  const CUcontext current = is_default_stream(stream) ? current_context(setup().api) : nullptr;
  if (!current && is_default_stream(stream)) return {nullptr, kNoLine};
  if (!is_last(stream, current, now) || last.home != &home)
    last = {stream, current, now, &home, line_of(home, stream, current), false};
  return {last.own ? &home : nullptr, last.line};
}

CUresult ask_for_fault(CUstream stream, Home* own, std::uint64_t now) {
  const DriverApi& api = setup().api;
  unsigned long long id = 0;
  if (!api.cuStreamGetId || process().captures.any_open()) return CUDA_SUCCESS;
  const CUresult result = api.cuStreamGetId(stream, &id);
  if (result != CUDA_SUCCESS) return is_sticky(result) ? result : CUDA_SUCCESS;
  if (own) own->is_sound(now);
  return CUDA_SUCCESS;
}

void stream_ending(const Guard&, CUstream stream) {
  process().registry.each([stream](Home& home) {
    if (home.serves()) home.tape()->stream_ending(reinterpret_cast<StreamRef>(stream));
  });
  process().registry.stream_gone(stream);
  epoch.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace gpupool
