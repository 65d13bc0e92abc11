// The nouns of the simulator: work, operations, streams, events, contexts, cards and their memory, and the one State
// that holds them all. Everything here is guarded by the big lock (call.h) and lives until the process ends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simcuda/arena.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/handle_table.h"

namespace gpupool::sim {

struct Op;
struct Stream;
struct Capture;
class SharedEvent;
using Context = CUctx_st;
using OpRef = std::shared_ptr<Op>;
using StreamRef = std::shared_ptr<Stream>;

enum class Touch { kRead, kWrite };

// Bytes that a piece of work touches on the device.
struct Access {
  CUdeviceptr start;
  uint64_t size;
  Touch touch;
  bool is_device;  // false: host memory, which needs no mapping
};

// What the program asked the device to do: becomes an operation of a stream, or a node of a graph.
struct Work {
  const char* name = "";
  std::vector<Access> accesses;
  std::function<void()> run;    // may be empty
  std::function<bool()> ready;  // empty: at once
  uint64_t ticks = 1;
  bool calls_program = false;       // runs without the big lock
  bool checks_peer_access = false;  // kernels need peer access, copies do not
};

struct Op {
  uint64_t sequence = 0;     // order of submission in the process
  Stream* stream = nullptr;  // none: done as soon as all waits are (a record of a context, a barrier)
  Context* context = nullptr;
  std::vector<OpRef> waits;  // not done yet when added; pruned as they are looked at
  Work work;
  uint64_t ticks_left = 1;
  uint64_t finished_at = 0;  // virtual time
  bool done = false;
  bool running = false;  // a host function of the program is being called
  bool never = false;    // asked for by a fault: never completes
};

enum class StreamKind { kLegacy, kPerThread, kCreated };

struct Stream {
  uint64_t id = 0;
  StreamKind kind = StreamKind::kCreated;
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  bool destroyed = false;  // its work still runs
  std::deque<OpRef> queue;
  OpRef tail;  // last submitted, until it is done
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> capture_frontier;  // nodes that the next one follows

  bool is_blocking() const { return kind != StreamKind::kLegacy && !(flags & CU_STREAM_NON_BLOCKING); }
};

enum class MemoryKind { kPlain, kPooled, kManaged, kHost, kRegistered, kImported, kGraph };

// One allocation that the program knows by address.
struct Allocation {
  CUdeviceptr start = 0;
  uint64_t size = 0;
  MemoryKind kind = MemoryKind::kPlain;
  Context* context = nullptr;
  int device = 0;
  uint64_t buffer_id = 0;
  CUmemoryPool pool = nullptr;
  unsigned flags = 0;
  bool sync_memops = false;
};

// Device addresses that kernels may touch without being mapped by VMM calls.
struct Region {
  uint64_t size = 0;
  std::set<int> devices;  // that reach it without peer access
};

// Physical memory of the VMM interface; lives while a handle or a mapping refers to it.
struct Physical {
  uint64_t size = 0;
  CUmemAllocationProp prop{};
  int file = -1;
  uint64_t file_offset = 0;
  bool own_file = false;                    // a descriptor of its own, else a part of the card's
  bool shared = false;                      // has been exported
  int device = -1;                          // -1: host memory, not counted
  CUmemGenericAllocationHandle handle = 0;  // its name while one is held, or its last
  ~Physical();
};

struct Mapping {
  uint64_t size = 0;
  std::shared_ptr<Physical> physical;
  std::map<int, CUmemAccess_flags> access;  // by device; -1 is the host
  uint64_t buffer_id = 0;
};

struct Device {
  int ordinal = 0;
  Card card;
  Arena arena;
  Context* primary = nullptr;
  unsigned primary_users = 0;
  unsigned primary_flags = 0;
  CUmemoryPool default_pool = nullptr;
  CUmemoryPool current_pool = nullptr;
  int vmm_file = -1;  // handles that are not shareable lie in it one behind the other
  uint64_t vmm_file_end = 0;
  uint64_t graph_used = 0;
  uint64_t graph_used_high = 0;
};

struct Graph;

struct State {
  std::vector<std::unique_ptr<Device>> devices;
  HandleTable<CUctx_st> contexts;
  HandleTable<CUstream_st> streams;
  HandleTable<CUevent_st> events;
  HandleTable<CUmemPoolHandle_st> pools;

  std::map<CUdeviceptr, Allocation> allocations;
  std::map<CUdeviceptr, Region> regions;
  std::map<CUdeviceptr, uint64_t> reservations;  // start -> size
  std::map<CUdeviceptr, Mapping> mappings;

  struct VmmHandle {
    std::shared_ptr<Physical> physical;
    unsigned users = 0;
  };
  std::unordered_map<CUmemGenericAllocationHandle, VmmHandle> vmm_handles;

  std::vector<std::shared_ptr<Capture>> captures;  // open ones
  uint64_t next_id = 1;                            // streams, contexts, buffers, captures, handles: never used twice
};

State& state();

// Needs of nearly every call. The current context, if there is one and it is sound.
CUresult current_context(Context*& out);
// The same, but a lost context is no error: for calls that must work after a fault.
CUresult current_context_even_lost(Context*& out);
CUresult device_of(CUdevice ordinal, Device*& out);

// The allocation or mapping that holds `address`; null if none does.
Allocation* find_allocation(CUdeviceptr address);
std::map<CUdeviceptr, Mapping>::iterator find_mapping(CUdeviceptr address);
std::map<CUdeviceptr, uint64_t>::iterator find_reservation(CUdeviceptr address);

// Whether `device` can reach all these bytes; `from` (may be null) adds its peers.
bool reachable(CUdeviceptr start, uint64_t size, int device, const Context* from);

// Whether the address belongs to a card (or managed memory), not to the host.
bool is_device_address(CUdeviceptr address);

}  // namespace gpupool::sim

struct CUctx_st {
  uint64_t id = 0;
  gpupool::sim::Device* device = nullptr;
  unsigned flags = 0;
  unsigned users = 1;  // of one that the program made: cuCtxAttach and cuCtxDetach
  bool primary = false;
  CUctx_st* parent = nullptr;     // of a green context: its primary
  CUresult error = CUDA_SUCCESS;  // sticky
  gpupool::sim::StreamRef legacy;
  std::map<uint64_t, gpupool::sim::StreamRef> per_thread;
  std::vector<gpupool::sim::StreamRef> streams;  // created ones, and destroyed ones that still have work
  gpupool::sim::OpRef barrier;                   // future work waits for it
  std::set<CUctx_st*> peers;
  std::map<int, size_t> limits;
};

struct CUstream_st {
  gpupool::sim::StreamRef stream;
};

struct CUevent_st {
  CUctx_st* context = nullptr;
  unsigned flags = 0;
  gpupool::sim::OpRef record;                      // none: never recorded, or complete long ago
  std::shared_ptr<gpupool::sim::Capture> capture;  // recorded inside it
  std::vector<CUgraphNode> capture_nodes;
  unsigned polls = 0;
  std::shared_ptr<gpupool::sim::SharedEvent> shared;  // other processes know it
};
