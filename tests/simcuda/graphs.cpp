// Graphs after the capture: instantiation, launch, memory nodes. A launch queues the nodes one by one in an order that
// the graph allows. Memory of allocation nodes has one address for good and goes with the last of the graph and its
// executables.
#include <algorithm>
#include <set>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/memory.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

std::set<CUgraphExec>& executables() {
  static auto* const instance = new std::set<CUgraphExec>;
  return *instance;
}

CUresult create(CUgraph* out, unsigned flags) {
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  *out = new CUgraph_st;
  return CUDA_SUCCESS;
}

CUresult destroy(CUgraph graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  delete graph;
  return CUDA_SUCCESS;
}

CUresult get_nodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  if (!nodes) return *count = graph->nodes.size(), CUDA_SUCCESS;
  for (size_t i = 0; i < *count; ++i) nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
  *count = std::min(*count, graph->nodes.size());
  return CUDA_SUCCESS;
}

CUresult node_type(CUgraphNode node, CUgraphNodeType* type) {
  return node && type ? (*type = node->type, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult alloc_node_params(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  if (!node || !out || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return CUDA_ERROR_INVALID_VALUE;
  *out = node->allocation;
  return CUDA_SUCCESS;
}

CUresult free_node_params(CUgraphNode node, CUdeviceptr* out) {
  if (!node || !out || node->type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_ERROR_INVALID_VALUE;
  *out = node->address;
  return CUDA_SUCCESS;
}

// Of a piece of the graph's memory, until the graph and what was made of it are gone.
std::optional<CUdeviceptr> take_memory(CUgraph graph, Device& device, size_t bytes) {
  const std::optional<uint64_t> start = device.arena.allocate(bytes);
  if (!start) return {};
  graph->memory->pieces.push_back({&device, *start, bytes, false});
  device.graph_used += Arena::allocated_bytes(bytes);
  device.graph_used_high = std::max(device.graph_used_high, device.graph_used);
  state().regions[*start] = Region{Arena::allocated_bytes(bytes), {device.ordinal}};
  add_allocation(*start, bytes, MemoryKind::kGraph, nullptr, device.ordinal);
  return *start;
}

void describe_allocation(CUgraphNode node, const Device& device, CUdeviceptr start, size_t bytes) {
  node->allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  node->allocation.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  node->allocation.poolProps.location.id = device.ordinal;
  node->allocation.bytesize = bytes;
  node->allocation.dptr = node->address = start;
}

// Whether the address is memory of a graph; it is the program's no more.
bool free_inside(CUgraph graph, CUdeviceptr address) {
  const auto found = state().allocations.find(address);
  if (found == state().allocations.end() || found->second.kind != MemoryKind::kGraph) return false;
  for (GraphMemory::Piece& piece : graph->memory->pieces)
    piece.freed_inside = piece.freed_inside || piece.start == address;
  state().allocations.erase(found);
  return true;
}

CUgraphNode add_node(CUgraph graph, CUgraphNodeType type, const CUgraphNode* follows, size_t count) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  node->follows.assign(follows, follows + count);
  return node;
}

CUresult add_alloc_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* follows, size_t count,
                        CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Device* device = nullptr;
  if (!out || !graph || !params || params->bytesize == 0 || (count && !follows)) return CUDA_ERROR_INVALID_VALUE;
  if (params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = device_of(params->poolProps.location.id, device)) return e;
  const std::optional<CUdeviceptr> start = take_memory(graph, *device, params->bytesize);
  if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = add_node(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, follows, count);
  describe_allocation(*out, *device, *start, params->bytesize);
  (*out)->work.name = "graph allocation";
  params->dptr = *start;
  return CUDA_SUCCESS;
}

CUresult add_free_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* follows, size_t count, CUdeviceptr address) {
  if (!out || !graph || (count && !follows) || !free_inside(graph, address)) return CUDA_ERROR_INVALID_VALUE;
  *out = add_node(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, follows, count);
  (*out)->address = address;
  (*out)->work.name = "graph free";
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* out, CUgraph graph, unsigned long long) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  *out = new CUgraphExec_st;
  (*out)->memory = graph->memory;
  (*out)->context = context;
  for (const auto& node : graph->nodes) (*out)->steps.push_back({node->work, node->records});
  executables().insert(*out);
  return CUDA_SUCCESS;
}

// As before CUDA 12, with room for a message.
CUresult instantiate_with_log(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong, char* log, size_t size) {
  if (wrong) *wrong = nullptr;
  if (log && size) *log = 0;
  return instantiate(out, graph, 0);
}

CUresult instantiate_with_params(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = instantiate(out, graph, params->flags);
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult destroy_executable(CUgraphExec exec) {
  if (!executables().erase(exec)) return CUDA_ERROR_INVALID_VALUE;
  delete exec;
  return CUDA_SUCCESS;
}

CUresult upload(CUgraphExec exec, CUstream) {
  return executables().count(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch(CUgraphExec exec, CUstream handle) {
  if (!executables().count(exec)) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& step : exec->steps) {
    Work work = step.work;
    // A launch keeps the graph's memory until it has run.
    work.run = [run = std::move(work.run), memory = exec->memory] {
      if (run) run();
    };
    OpRef op;
    if (const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_GRAPH, std::move(work), &op)) return e;
    if (step.records && state().events.valid(step.records)) step.records->record = op;
  }
  for (const auto& piece : exec->memory->pieces) {
    if (!piece.freed_inside && !state().allocations.count(piece.start))
      add_allocation(piece.start, piece.size, MemoryKind::kGraph, nullptr, piece.device->ordinal);
  }
  return CUDA_SUCCESS;
}

}  // namespace

GraphMemory::~GraphMemory() {
  for (const Piece& piece : pieces) {
    state().allocations.erase(piece.start);
    state().regions.erase(piece.start);
    piece.device->graph_used -= Arena::allocated_bytes(piece.size);
    piece.device->arena.release(piece.start, piece.size);
  }
}

CUresult capture_alloc(Stream& stream, Device& device, CUdeviceptr* address, size_t bytes) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const std::optional<CUdeviceptr> start = take_memory(stream.capture->graph, device, bytes);
  if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
  CUgraphNode node = nullptr;
  Work work;
  work.name = "graph allocation";
  const CUresult e = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, std::move(work), &node);
  describe_allocation(node, device, *start, bytes);
  *address = *start;
  return e;
}

CUresult capture_free(Stream& stream, CUdeviceptr address) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!free_inside(stream.capture->graph, address)) {
    // A capture can only free what a graph allocated.
    stream.capture->invalid = true;
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraphNode node = nullptr;
  Work work;
  work.name = "graph free";
  const CUresult e = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(work), &node);
  node->address = address;
  return e;
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuGraphCreate(CUgraph* out, unsigned flags) { return enter(Symbol::cuGraphCreate, create, out, flags); }
CUresult cuGraphDestroy(CUgraph graph) { return enter(Symbol::cuGraphDestroy, destroy, graph); }
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return enter(Symbol::cuGraphGetNodes, get_nodes, graph, nodes, count);
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return enter(Symbol::cuGraphNodeGetType, node_type, node, type);
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return enter(Symbol::cuGraphMemAllocNodeGetParams, alloc_node_params, node, out);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return enter(Symbol::cuGraphMemFreeNodeGetParams, free_node_params, node, out);
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* follows, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return enter(Symbol::cuGraphAddMemAllocNode, add_alloc_node, out, graph, follows, count, params);
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* follows, size_t count,
                               CUdeviceptr address) {
  return enter(Symbol::cuGraphAddMemFreeNode, add_free_node, out, graph, follows, count, address);
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong, char* log, size_t size) {
  return enter(Symbol::cuGraphInstantiate, instantiate_with_log, out, graph, wrong, log, size);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong, char* log, size_t size) {
  return enter(Symbol::cuGraphInstantiate_v2, instantiate_with_log, out, graph, wrong, log, size);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return enter(Symbol::cuGraphInstantiateWithFlags, instantiate, out, graph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return enter(Symbol::cuGraphInstantiateWithParams, instantiate_with_params, out, graph, params);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return enter(Symbol::cuGraphInstantiateWithParams_ptsz, instantiate_with_params, out, graph, params);
}
CUresult cuGraphExecDestroy(CUgraphExec exec) { return enter(Symbol::cuGraphExecDestroy, destroy_executable, exec); }
CUresult cuGraphUpload(CUgraphExec exec, CUstream s) { return enter(Symbol::cuGraphUpload, upload, exec, legacy(s)); }
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream s) {
  return enter(Symbol::cuGraphUpload_ptsz, upload, exec, per_thread(s));
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) { return enter(Symbol::cuGraphLaunch, launch, exec, legacy(s)); }
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream s) {
  return enter(Symbol::cuGraphLaunch_ptsz, launch, exec, per_thread(s));
}
