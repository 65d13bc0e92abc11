// See capture.h. Rules: the CUDA documentation of CUstreamCaptureMode, and what was measured for calls it is silent
// about.
#include "tests/simcuda/capture.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "tests/simcuda/call.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::vector<std::shared_ptr<Capture>> conflicting() {
  std::vector<std::shared_ptr<Capture>> found;
  for (const auto& capture : state().captures) {
    if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool mine = capture->thread == this_thread();
    const bool everyones = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mine || everyones) found.push_back(capture);
  }
  return found;
}

void close(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture.reset();
    stream->capture_frontier.clear();
  }
  auto& open = state().captures;
  open.erase(std::find(open.begin(), open.end(), capture));
}

// All streams that joined must have come back to where the capture began.
bool is_joined(const Capture& capture) {
  std::unordered_set<CUgraphNode> reached;
  std::vector<CUgraphNode> open = capture.origin->capture_frontier;
  while (!open.empty()) {
    const CUgraphNode node = open.back();
    open.pop_back();
    if (reached.insert(node).second) open.insert(open.end(), node->follows.begin(), node->follows.end());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
    return std::all_of(stream->capture_frontier.begin(), stream->capture_frontier.end(),
                       [&](CUgraphNode node) { return reached.count(node) != 0; });
  });
}

CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
               CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (stream->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = state().next_id++;
  capture->mode = mode;
  capture->thread = this_thread();
  capture->origin = stream;
  capture->graph_is_callers = graph != nullptr;
  capture->graph = graph ? graph : new CUgraph_st;
  state().captures.push_back(capture);
  join(*stream, capture, std::vector<CUgraphNode>(dependencies, dependencies + count));
  return CUDA_SUCCESS;
}

CUresult begin_new(CUstream handle, CUstreamCaptureMode mode) { return begin(handle, nullptr, nullptr, 0, mode); }

CUresult begin_global(CUstream handle) { return begin_new(handle, CU_STREAM_CAPTURE_MODE_GLOBAL); }

CUresult begin_to_graph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                        size_t count, CUstreamCaptureMode mode) {
  return graph ? begin(handle, graph, dependencies, count, mode) : CUDA_ERROR_INVALID_VALUE;
}

CUresult end(CUstream handle, CUgraph* graph) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != stream) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (!is_joined(*capture)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  close(capture);
  if (result == CUDA_SUCCESS) {
    *graph = capture->graph;
  } else if (!capture->graph_is_callers) {
    delete capture->graph;
  }
  return result;
}

CUstreamCaptureStatus status(const Stream& stream) {
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  *out = status(*stream);
  return CUDA_SUCCESS;
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status_out, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** dependencies, size_t* count) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!status_out) return CUDA_ERROR_INVALID_VALUE;
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  *status_out = status(*stream);
  if (*status_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (dependencies) *dependencies = stream->capture_frontier.data();
  if (count) *count = stream->capture_frontier.size();
  return CUDA_SUCCESS;
}

CUresult capture_info_v1(CUstream handle, CUstreamCaptureStatus* status_out, cuuint64_t* id) {
  return capture_info(handle, status_out, id, nullptr, nullptr, nullptr);
}

CUresult capture_info_v3(CUstream handle, CUstreamCaptureStatus* status_out, cuuint64_t* id, CUgraph* graph,
                         const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  if (edges) *edges = nullptr;
  return capture_info(handle, status_out, id, graph, dependencies, count);
}

CUresult exchange_mode(CUstreamCaptureMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, t_mode);
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t this_thread() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t id = next++;
  return id;
}

bool is_open(const std::shared_ptr<Capture>& capture) {
  const auto& open = state().captures;
  return capture && std::find(open.begin(), open.end(), capture) != open.end();
}

CUresult refuse_unsafe_call() {
  const auto found = conflicting();
  for (const auto& capture : found) capture->invalid = true;
  return found.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_while_capturing(Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : state().captures) {
    for (const Stream* stream : capture->streams) {
      if (stream->context != &context && stream->context->parent != &context) continue;
      capture->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

CUresult refuse_implicit_dependency(Stream& legacy) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : state().captures) {
    for (const Stream* stream : capture->streams) {
      if (stream->context != legacy.context || !stream->is_blocking()) continue;
      capture->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

void join(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<CUgraphNode>& after) {
  if (!stream.capture) {
    stream.capture = capture;
    stream.capture_frontier.clear();
    capture->streams.push_back(&stream);
  }
  for (CUgraphNode node : after) {
    auto& frontier = stream.capture_frontier;
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
  }
}

void leave_capture(Stream& stream) {
  if (!stream.capture) return;
  stream.capture->invalid = true;
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin == &stream) {
    close(capture);
    if (!capture->graph_is_callers) delete capture->graph;
    return;
  }
  capture->streams.erase(std::find(capture->streams.begin(), capture->streams.end(), &stream));
  stream.capture.reset();
  stream.capture_frontier.clear();
}

CUresult capture_node(Stream& stream, CUgraphNodeType type, Work work, CUgraphNode* made) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto node = std::make_unique<CUgraphNode_st>();
  node->type = type;
  node->work = std::move(work);
  node->follows = stream.capture_frontier;
  stream.capture_frontier = {node.get()};
  if (made) *made = node.get();
  stream.capture->graph->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuStreamBeginCapture(CUstream s) { return enter(Symbol::cuStreamBeginCapture, begin_global, legacy(s)); }
CUresult cuStreamBeginCapture_ptsz(CUstream s) {
  return enter(Symbol::cuStreamBeginCapture_ptsz, begin_global, per_thread(s));
}
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  return enter(Symbol::cuStreamBeginCapture_v2, begin_new, legacy(s), mode);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream s, CUstreamCaptureMode mode) {
  return enter(Symbol::cuStreamBeginCapture_v2_ptsz, begin_new, per_thread(s), mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream s, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges,
                                     size_t count, CUstreamCaptureMode mode) {
  return enter(Symbol::cuStreamBeginCaptureToGraph, begin_to_graph, legacy(s), graph, after, edges, count, mode);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream s, CUgraph graph, const CUgraphNode* after,
                                          const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return enter(Symbol::cuStreamBeginCaptureToGraph_ptsz, begin_to_graph, per_thread(s), graph, after, edges, count,
               mode);
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* graph) {
  return enter(Symbol::cuStreamEndCapture, end, legacy(s), graph);
}
CUresult cuStreamEndCapture_ptsz(CUstream s, CUgraph* graph) {
  return enter(Symbol::cuStreamEndCapture_ptsz, end, per_thread(s), graph);
}
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* out) {
  return enter(Symbol::cuStreamIsCapturing, is_capturing, legacy(s), out);
}
CUresult cuStreamIsCapturing_ptsz(CUstream s, CUstreamCaptureStatus* out) {
  return enter(Symbol::cuStreamIsCapturing_ptsz, is_capturing, per_thread(s), out);
}
CUresult cuStreamGetCaptureInfo(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id) {
  return enter(Symbol::cuStreamGetCaptureInfo, capture_info_v1, legacy(s), out, id);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id) {
  return enter(Symbol::cuStreamGetCaptureInfo_ptsz, capture_info_v1, per_thread(s), out, id);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, size_t* count) {
  return enter(Symbol::cuStreamGetCaptureInfo_v2, capture_info, legacy(s), out, id, graph, after, count);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** after, size_t* count) {
  return enter(Symbol::cuStreamGetCaptureInfo_v2_ptsz, capture_info, per_thread(s), out, id, graph, after, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, const CUgraphEdgeData** edges, size_t* count) {
  return enter(Symbol::cuStreamGetCaptureInfo_v3, capture_info_v3, legacy(s), out, id, graph, after, edges, count);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** after, const CUgraphEdgeData** edges, size_t* count) {
  return enter(Symbol::cuStreamGetCaptureInfo_v3_ptsz, capture_info_v3, per_thread(s), out, id, graph, after, edges,
               count);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return enter(Symbol::cuThreadExchangeStreamCaptureMode, exchange_mode, mode);
}
