// Who serves a trace: our own pool, or a model of another allocator. One per replay; one thread.
// Slots and streams are the trace's dense numbers. reserved() is what the card has given: it is read after every event.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/replay/costs.h"
#include "config/bytes.h"

namespace gpupool::cli {

class Model {
 public:
  virtual ~Model() = default;
  /// False: out of memory.
  virtual bool allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) = 0;
  virtual void free(std::uint32_t slot, std::uint32_t stream) = 0;
  virtual Bytes reserved() const = 0;
  virtual DriverCalls driver_calls() const = 0;
};

struct ModelRow {
  std::string_view name;
  std::string_view sentence;
  std::unique_ptr<Model> (*make)(Bytes card, Bytes max_split);
};

/// The models of other allocators, by the names that --compare takes. `max_split` is PyTorch's max_split_size_mb; 0 is
/// none.
const std::vector<ModelRow>& model_rows();

std::unique_ptr<Model> make_pytorch(Bytes card, Bytes max_split);
std::unique_ptr<Model> make_pytorch_expandable(Bytes card, Bytes max_split);
std::unique_ptr<Model> make_paddle_auto_growth(Bytes card, Bytes max_split);

}  // namespace gpupool::cli
