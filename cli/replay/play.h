// Playing a trace: every event in some order, to our pool or to a model, timed without the reading of the file.
#pragma once
#include <string>

#include "cli/models/model.h"
#include "cli/replay/order.h"
#include "cli/replay/outcome.h"
#include "cli/trace/trace.h"
#include "config/options.h"
#include "pool/tape_types.h"

namespace gpupool::cli {

/// A model of another allocator; `strategy` is how the outcome is called.
Outcome play_model(const Trace& trace, const std::string& strategy, Model& model);

/// Our pool, as resolved for a card of `pool.total` bytes.
Outcome play_pool(const Trace& trace, const ResolvedPool& pool, Order order = {});

/// Whether that pool serves every request; ends with the first one that it refuses.
bool pool_serves(const Trace& trace, const ResolvedPool& pool, Order order = {});

}  // namespace gpupool::cli
