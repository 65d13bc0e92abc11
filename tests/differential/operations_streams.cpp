// Streams and events that come and go, and captures: begun and ended within one step, so that no other call of the
// program falls into them.
#include "tests/differential/operations.h"

namespace differential {
namespace {

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};
constexpr std::uint64_t kRelaxed = 2;
constexpr const char* kModeNames[] = {"global", "thread-local", "relaxed"};

// Memory of the graph: allocated, written and freed inside.
void use_ordered(World& world, CUstream stream) {
  CUdeviceptr block = 0;
  const std::size_t bytes = 1 + world.below(1 << 16);
  const int result = driver().cuMemAllocAsync_(&block, bytes, stream);
  world.say("alloc in the capture", result, block ? "a block" : "none");
  if (!block) return;
  world.say("write in the capture", driver().cuMemsetD8Async_(block, 1, bytes, stream));
  world.say("free in the capture", driver().cuMemFreeAsync_(block, stream));
}

// Plain memory while this thread captures; only relaxed captures survive that natively.
void use_plain(World& world) {
  CUdeviceptr block = 0;
  const std::size_t bytes = 1 + world.below(1 << 20);
  const int result = world.api().alloc(&block, bytes);
  world.say("alloc beside the capture", result);
  if (result == 0) world.say("free beside the capture", world.api().free(block));
}

void launch(World& world, CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  world.say("instantiate", driver().cuGraphInstantiate_(&exec, graph, 0));
  if (!exec) return;
  world.say("launch", driver().cuGraphLaunch_(exec, stream));
  world.say("wait", driver().cuStreamSynchronize_(stream));
  world.say("exec destroyed", driver().cuGraphExecDestroy_(exec));
}

template <class Inside>
void capture(World& world, std::uint64_t mode, Inside inside) {
  if (world.streams.size() < 2) return;
  const CUstream stream = world.streams[world.below(world.streams.size())];
  world.say(std::string("capture ") + kModeNames[mode], driver().cuStreamBeginCapture_(stream, kModes[mode]));
  for (std::uint64_t steps = 1 + world.below(3); steps > 0; --steps) inside(stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const int asked = driver().cuStreamIsCapturing_(stream, &status);
  world.say("capturing", asked, std::to_string(status));
  CUgraph graph = nullptr;
  const int ended = driver().cuStreamEndCapture_(stream, &graph);
  world.say("capture ended", ended, graph ? "a graph" : "none");
  if (!graph) return;
  launch(world, graph, stream);
  world.say("graph destroyed", driver().cuGraphDestroy_(graph));
}

}  // namespace

void change_streams(World& world) {
  if (world.streams.size() < 2 || (world.streams.size() < 6 && world.one_in(2))) {
    CUstream stream = nullptr;
    const unsigned flags = world.one_in(3) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    const int result = driver().cuStreamCreate_(&stream, flags);
    if (result == 0) world.streams.push_back(stream);
    return world.say("stream " + std::to_string(flags), result);
  }
  const std::size_t index = world.below(world.streams.size());
  const CUstream stream = world.streams[index];
  world.streams[index] = world.streams.back();
  world.streams.pop_back();
  world.say("stream destroyed", driver().cuStreamDestroy_(stream));
}

void synchronize(World& world) {
  CUevent event = nullptr;
  switch (world.below(4)) {
    case 0:
      return world.say("wait for all", driver().cuCtxSynchronize_());
    case 1:
      world.say("event", driver().cuEventCreate_(&event, CU_EVENT_DEFAULT));
      world.say("record", driver().cuEventRecord_(event, world.any_stream()));
      world.say("stream waits", driver().cuStreamWaitEvent_(world.any_stream(), event, 0));
      world.say("event waited for", driver().cuEventSynchronize_(event));
      world.say("event asked", driver().cuEventQuery_(event));
      world.say("event destroyed", driver().cuEventDestroy_(event));
      return;
    default:
      world.say("wait", driver().cuStreamSynchronize_(world.any_stream()));
  }
}

void capture_ordered(World& world) {
  capture(world, world.below(std::size(kModes)), [&](CUstream stream) { use_ordered(world, stream); });
}

// In the other modes: Exception::plain_in_strict_capture.
void capture_plain(World& world) {
  capture(world, kRelaxed, [&](CUstream stream) {
    if (world.one_in(2)) return use_ordered(world, stream);
    use_plain(world);
  });
}

}  // namespace differential
