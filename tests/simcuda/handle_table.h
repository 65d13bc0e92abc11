// Handles of one kind. A destroyed handle's address is given to the next one made (as the driver does), so a program
// that takes an address for an identity is seen. Objects are never returned to the heap: a stale handle is recognised,
// not dereferenced.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

namespace gpupool::sim {

template <class T>
class HandleTable {
 public:
  T* make() {
    if (free_.empty()) {
      slots_.push_back(std::make_unique<T>());
      free_.push_back(slots_.back().get());
    }
    T* handle = free_.back();
    free_.pop_back();
    live_.insert(handle);
    return handle;
  }
  void drop(T* handle) {
    live_.erase(handle);
    *handle = T{};
    free_.push_back(handle);
  }
  bool valid(T* handle) const { return live_.count(handle) != 0; }
  const std::unordered_set<T*>& all() const { return live_; }

 private:
  std::vector<std::unique_ptr<T>> slots_;
  std::vector<T*> free_;
  std::unordered_set<T*> live_;
};

}  // namespace gpupool::sim
