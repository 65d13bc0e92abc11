// From a command line to the pool that is replayed. A trace has no card: unless --card names one, it has more memory
// than any trace needs, and pool.size, a share of the card by default, is 0.
#pragma once
#include "cli/verbs.h"
#include "config/load.h"
#include "config/options.h"
#include "pool/granule.h"

namespace gpupool::cli {

/// As much as one tape can address.
inline constexpr Bytes kLargestCard = kMaxTapeBytes;

struct ReplaySetup {
  PoolOptions options;
  Bytes card = 0;
};

ReplaySetup replay_setup(std::string_view verb, const Arguments& arguments);

/// What does not hold is said on standard error; a strategy without a pool is a Problem.
ResolvedPool resolve_for_replay(const ReplaySetup& setup);

/// What --card says.
Bytes card_of(const Arguments& arguments);

/// A size on the command line.
Bytes bytes_of_text(std::string_view option, std::string_view text);

}  // namespace gpupool::cli
