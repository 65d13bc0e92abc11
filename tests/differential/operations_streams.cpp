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

// -1 where the driver has it no more.
template <class Older>
int instantiate_by(const Older& older, CUgraphExec& exec, CUgraph graph) {
  return older.function ? older(&exec, graph, nullptr, nullptr, 0) : -1;
}

void launch(World& world, CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  switch (world.below(4)) {
    case 0:
      world.say("instantiate with params", driver().cuGraphInstantiateWithParams_(&exec, graph, &params));
      break;
    case 1:
      world.say("instantiate as before 11.0", instantiate_by(driver().older_cuGraphInstantiate, exec, graph));
      break;
    case 2:
      world.say("instantiate as before 12.0", instantiate_by(driver().older_cuGraphInstantiate_v2, exec, graph));
      break;
    default:
      world.say("instantiate", driver().cuGraphInstantiateWithFlags_(&exec, graph, 0));
  }
  if (!exec) return;
  if (world.one_in(2)) world.say("upload", driver().cuGraphUpload_(exec, stream));
  world.say("launch", driver().cuGraphLaunch_(exec, stream));
  world.say("wait", driver().cuStreamSynchronize_(stream));
  world.say("exec destroyed", driver().cuGraphExecDestroy_(exec));
}

template <class Begin, class Inside>
void capture_by(World& world, const std::string& how, Begin begin, Inside inside) {
  if (world.streams.size() < 2) return;
  const CUstream stream = world.streams[world.below(world.streams.size())];
  world.say("capture " + how, begin(stream));
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

template <class Inside>
void capture(World& world, std::uint64_t mode, Inside inside) {
  capture_by(
      world, kModeNames[mode], [mode](CUstream stream) { return driver().cuStreamBeginCapture_(stream, kModes[mode]); },
      inside);
}

}  // namespace

void change_streams(World& world) {
  if (world.streams.size() < 2 || (world.streams.size() < 6 && world.one_in(2))) {
    CUstream stream = nullptr;
    const unsigned flags = world.one_in(3) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    const int result = world.one_in(3) ? driver().cuStreamCreateWithPriority_(&stream, flags, -1)
                                       : driver().cuStreamCreate_(&stream, flags);
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

// As before CUDA 10.1, when there was one mode.
void capture_as_before(World& world) {
  const auto& legacy = driver().older_cuStreamBeginCapture;
  const auto& per_thread = driver().older_cuStreamBeginCapture_ptsz;
  if (!legacy.function || !per_thread.function) return;
  const bool by_thread = world.one_in(2);
  capture_by(
      world, "as before", [&](CUstream stream) { return by_thread ? per_thread(stream) : legacy(stream); },
      [&](CUstream stream) { use_ordered(world, stream); });
}

// In the other modes: Exception::plain_in_strict_capture.
void capture_plain(World& world) {
  capture(world, kRelaxed, [&](CUstream stream) {
    if (world.one_in(2)) return use_ordered(world, stream);
    use_plain(world);
  });
}

// Into a graph of the program's, behind nothing.
void capture_to_graph(World& world) {
  if (world.streams.size() < 2) return;
  const CUstream stream = world.streams[world.below(world.streams.size())];
  const std::uint64_t mode = world.below(std::size(kModes));
  CUgraph graph = nullptr;
  CUgraph told = nullptr;
  world.say("graph", driver().cuGraphCreate_(&graph, 0));
  if (!graph) return;
  world.say(std::string("capture to it ") + kModeNames[mode],
            driver().cuStreamBeginCaptureToGraph_(stream, graph, nullptr, nullptr, 0, kModes[mode]));
  use_ordered(world, stream);
  const int ended = driver().cuStreamEndCapture_(stream, &told);
  world.say("capture ended", ended, told == graph ? "the graph" : "ANOTHER");
  launch(world, graph, stream);
  world.say("graph destroyed", driver().cuGraphDestroy_(graph));
}

// Memory nodes of the program's own.
void build_graph(World& world) {
  const CUstream stream = world.any_stream();
  CUgraph graph = nullptr;
  CUgraphNode allocates = nullptr;
  CUgraphNode frees = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  params.bytesize = world.one_in(8) ? 0 : 1 + world.below(1 << 20);
  world.say("graph", driver().cuGraphCreate_(&graph, 0));
  if (!graph) return;
  const int made = driver().cuGraphAddMemAllocNode_(&allocates, graph, nullptr, 0, &params);
  world.say("allocation node of " + std::to_string(params.bytesize), made, params.dptr ? "an address" : "none");
  if (made == 0) {
    world.say("free node", driver().cuGraphAddMemFreeNode_(&frees, graph, &allocates, 1, params.dptr));
    launch(world, graph, stream);
  }
  world.say("graph destroyed", driver().cuGraphDestroy_(graph));
}

}  // namespace differential
