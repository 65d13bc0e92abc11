// What the user may choose, as plain values: one struct for each group of options.def, each usable on its own.
// A default-constructed struct holds the defaults of the table. No CUDA, no JSON, no I/O; pool/ includes this file.
// ResolvedPool is PoolOptions once the card is known: every amount in bytes, every contradiction settled (resolve.h).
#pragma once
#include <string>
#include <vector>

#include "config/bytes.h"
#include "config/choices.h"
#include "config/parse.h"

namespace gpupool {

#define GPUPOOL_GROUP(group, Struct, sentence) struct Struct {
#define GPUPOOL_OPTION(group, Type, name, default_text, range, unit, sentence, origin) \
  Type name = default_of<Type>(default_text);
#define GPUPOOL_GROUP_END(group, Struct)          \
  bool operator==(const Struct&) const = default; \
  }                                               \
  ;
#include "config/options.def"
#undef GPUPOOL_GROUP
#undef GPUPOOL_OPTION
#undef GPUPOOL_GROUP_END

// One `devices.<device>.<key>`: a pool option for one card, as checked text. The row is an index into option_rows().
struct DeviceSetting {
  std::string device;  // CUDA ordinal, or UUID as nvidia-smi -L prints it
  std::size_t row = 0;
  std::string text;
  bool operator==(const DeviceSetting&) const = default;
};

struct Options {
#define GPUPOOL_GROUP(group, Struct, sentence) Struct group;
#define GPUPOOL_OPTION(...)
#define GPUPOOL_GROUP_END(...)
#include "config/options.def"
#undef GPUPOOL_GROUP
#undef GPUPOOL_OPTION
#undef GPUPOOL_GROUP_END
  std::vector<DeviceSetting> devices;
  bool operator==(const Options&) const = default;
};

struct ResolvedPool {
  PoolOptions options;
  Bytes total = 0;     // the card's memory
  Bytes size = 0;      // to reserve now; whole multiples of kHandleGranularity
  Bytes max = 0;       // 0: there is no pool (the diagnostics say why)
  Bytes headroom = 0;  // to be left free on the card
  Bytes handle = 0;    // 0: the pool chooses
  Bytes overflow = 0;  // host memory to hold where the card is full, at most; 0: none

  // The least step when the pool holds `held`; never beyond max.
  constexpr Bytes growth_from(Bytes held) const {
    const Bytes room = held < max ? max - held : 0;
    const Bytes step = options.growth.step_from(held);
    return step < room ? step : room;
  }
};

}  // namespace gpupool
