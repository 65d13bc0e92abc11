// The adversary of the late schedule: makes reuse without a fence visible as wrong data. See scheduler.h.
#include <algorithm>

#include "tests/simcuda/scheduler.h"

namespace gpupool::sim {
namespace {

bool writes_to(const Op& writer, const Access& read) {
  return std::any_of(writer.work.accesses.begin(), writer.work.accesses.end(), [&](const Access& access) {
    return access.touch == Touch::kWrite && access.start < read.start + read.size &&
           read.start < access.start + access.size;
  });
}

// The last queued write is the one to reach: the stream runs all before it on the way.
OpRef last_write(const Stream& stream, const Op& reader) {
  for (auto op = stream.queue.rbegin(); op != stream.queue.rend(); ++op) {
    for (const Access& access : reader.work.accesses) {
      if (access.touch == Touch::kRead && writes_to(**op, access)) return *op;
    }
  }
  return nullptr;
}

}  // namespace

void expose_races(const OpRef& reader) {
  std::vector<OpRef> writes;
  for (Context* context : state().contexts.all()) {
    for_each_stream(*context, [&](Stream& stream) {
      if (&stream == reader->stream) return;
      if (OpRef write = last_write(stream, *reader)) writes.push_back(std::move(write));
    });
  }
  for (const OpRef& write : writes) {
    while (!is_done(write)) {
      const std::vector<OpRef> candidates = runnable_towards(write);
      // A write that needs the reader first is ordered behind it: no race.
      if (candidates.empty() || std::find(candidates.begin(), candidates.end(), reader) != candidates.end()) break;
      step(candidates.front(), Races::kIgnore);
    }
  }
}

}  // namespace gpupool::sim
