// The one State, and the questions about addresses that several parts ask.
#include "tests/simcuda/state.h"

#include "tests/simcuda/mempool.h"
#include "tests/simcuda/settings.h"

namespace gpupool::sim {
namespace {

// The entry of an address map whose range holds `address`; `size_of` tells the size of a value.
template <class Map, class SizeOf>
auto holding(Map& map, CUdeviceptr address, SizeOf size_of) {
  auto entry = map.upper_bound(address);
  if (entry == map.begin()) return map.end();
  --entry;
  return address - entry->first < size_of(entry->second) ? entry : map.end();
}

bool mapping_reachable(const Mapping& mapping, int device) {
  const auto access = mapping.access.find(device);
  return access != mapping.access.end() && access->second != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

}  // namespace

State& state() {
  static State* const instance = [] {
    auto* made = new State;
    for (int ordinal = 0; ordinal < settings().devices; ++ordinal) {
      auto device = std::make_unique<Device>();
      device->ordinal = ordinal;
      device->card.open(ordinal, settings().memory_bytes);
      device->arena.open(device->card);
      made->devices.push_back(std::move(device));
    }
    return made;
  }();
  return *instance;
}

CUresult device_of(CUdevice ordinal, Device*& out) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= state().devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  out = state().devices[static_cast<size_t>(ordinal)].get();
  return CUDA_SUCCESS;
}

Allocation* find_allocation(CUdeviceptr address) {
  auto& map = state().allocations;
  const auto found = holding(map, address, [](const Allocation& a) { return a.size; });
  return found == map.end() ? nullptr : &found->second;
}

std::map<CUdeviceptr, Mapping>::iterator find_mapping(CUdeviceptr address) {
  return holding(state().mappings, address, [](const Mapping& m) { return m.size; });
}

std::map<CUdeviceptr, uint64_t>::iterator find_reservation(CUdeviceptr address) {
  return holding(state().reservations, address, [](uint64_t size) { return size; });
}

bool reachable(CUdeviceptr start, uint64_t size, int device, const Context* from) {
  const CUdeviceptr end = start + size;
  while (start < end) {
    if (const auto region = holding(state().regions, start, [](const Region& r) { return r.size; });
        region != state().regions.end()) {
      const std::set<int>& devices = region->second.devices;
      bool ok = !from || devices.count(device);
      if (!ok) {
        for (const Context* peer : from->peers) ok = ok || devices.count(peer->device->ordinal);
      }
      if (!ok) return false;
      start = region->first + region->second.size;
    } else if (const auto mapping = find_mapping(start); mapping != state().mappings.end()) {
      if (from ? !mapping_reachable(mapping->second, device) : mapping->second.access.empty()) return false;
      start = mapping->first + mapping->second.size;
    } else {
      return false;
    }
  }
  return true;
}

bool is_device_address(CUdeviceptr address) {
  if (const Allocation* found = find_allocation(address))
    return found->kind != MemoryKind::kHost && found->kind != MemoryKind::kRegistered;
  const auto region = holding(state().regions, address, [](const Region& r) { return r.size; });
  return region != state().regions.end() || find_reservation(address) != state().reservations.end();
}

}  // namespace gpupool::sim
