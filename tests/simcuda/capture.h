// Stream captures and the graphs they make. A capturing stream queues nothing: its work becomes nodes. What a capture
// forbids is told by the caller's capture mode; a forbidden call fails and kills the captures that it conflicts with.
// Guarded by the big lock.
#pragma once

#include <memory>
#include <vector>

#include "tests/simcuda/state.h"

struct CUgraphNode_st {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<CUgraphNode> follows;
  gpupool::sim::Work work;
  CUevent records = nullptr;  // event record node
  CUdeviceptr address = 0;    // memory nodes
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
};

namespace gpupool::sim {

// Memory of allocation nodes: belongs to the graph and to what was instantiated from it.
struct GraphMemory {
  struct Piece {
    Device* device;
    CUdeviceptr start;
    uint64_t size;
    bool freed_inside;  // by a free node: the program never owns it
  };
  std::vector<Piece> pieces;
  ~GraphMemory();
};

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;
  Stream* origin = nullptr;
  CUgraph graph = nullptr;
  bool graph_is_callers = false;  // cuStreamBeginCaptureToGraph
  bool invalid = false;
  std::vector<Stream*> streams;
};

uint64_t this_thread();

// For calls that are unsafe while something captures: success, or 900 with the conflicting captures invalidated.
CUresult refuse_unsafe_call();
// For calls that conflict with any capture in the context, in every mode.
CUresult refuse_while_capturing(Context& context);
// For work on the legacy stream: it would depend on blocking streams that capture.
CUresult refuse_implicit_dependency(Stream& legacy);

bool is_open(const std::shared_ptr<Capture>& capture);
void join(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<CUgraphNode>& after);
void leave_capture(Stream& stream);

// Adds a node behind what the stream captured so far; 901 if its capture is dead already.
CUresult capture_node(Stream& stream, CUgraphNodeType type, Work work, CUgraphNode* made = nullptr);

CUresult capture_alloc(Stream& stream, Device& device, CUdeviceptr* address, size_t bytes);
CUresult capture_free(Stream& stream, CUdeviceptr address);

}  // namespace gpupool::sim

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in an order that may be executed
  std::shared_ptr<gpupool::sim::GraphMemory> memory = std::make_shared<gpupool::sim::GraphMemory>();
};

struct CUgraphExec_st {
  struct Step {
    gpupool::sim::Work work;
    CUevent records;
  };
  std::vector<Step> steps;
  std::shared_ptr<gpupool::sim::GraphMemory> memory;
  CUctx_st* context;
};
