// What `size` concludes, however the need was found: the configuration for next time, and what fits on a card.
// Values and pure functions, but for conclude(), which prints and writes.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "config/bytes.h"
#include "config/parse.h"

namespace gpupool::cli {

/// Sizes for next time are multiples of it.
inline constexpr Bytes kSizeStep = 64_MiB;

/// A pool, a process or a trace.
struct SizeRow {
  std::string who;
  Bytes need = 0;
  nlohmann::ordered_json facts = {};
  Bytes reordered = 0;  // what also serves slightly other orders, a multiple of kSizeStep; 0: not looked for
};

struct SizePlan {
  std::vector<SizeRow> rows;  // at least one
  Share margin;
  Bytes reordered = 0;  // what serves all rows in other orders, too; then there is no margin
  Bytes handle = 0;     // 0: as it was
  Bytes headroom = 0;   // what driver and libraries were seen to use on a card; 0: not seen
  Bytes card = 0;       // its memory; 0: not known
  std::string card_name;
  std::vector<std::string> advice;  // sentences for the next run
};

/// The need and the margin, rounded up to a step.
Bytes with_margin(Bytes need, Share margin);

/// A share up to the whole; unlike one of a card it may be less than 1%. `option` is what a Problem names.
Share share_of(std::string_view option, const std::string& text);

/// Prints what was found and writes --write; returns `status`.
Exit conclude(const Arguments& arguments, const SizePlan& plan, Exit status);

/// `gpupool size -- PROGRAM`: by one run of it.
Exit size_by_running(const Arguments& arguments);

}  // namespace gpupool::cli
