// Looking for a list of operations that breaks a promise: at random, or all there are; and making it short.
#pragma once

#include <functional>
#include <optional>

#include "tests/pool/model/world.h"

namespace gpupool::model {

struct Failure {
  std::string promise;
  Operations operations;  // up to the one that broke it
};

Operations random_operations(std::uint64_t seed, std::size_t count, const Scene& scene);

/// The first broken promise.
std::optional<Failure> play(const Scene& scene, const Operations& operations, Sabotage sabotage = Sabotage::kNone);

/// A short list that still fails: pieces are left out, then sizes are made small, for as long as something helps.
Failure shrink(const Scene& scene, Failure failure, Sabotage sabotage = Sabotage::kNone);

/// Plays every list of up to `length` operations of `alphabet` in which each operation does something. `played` counts
/// lists.
std::optional<Failure> every_list(const Scene& scene, const Operations& alphabet, unsigned length,
                                  std::uint64_t& played, Sabotage sabotage = Sabotage::kNone);

/// Two streams and memory for two small blocks or a large one: few operations, and every reuse is of the same bytes.
const Scene& small_scene();
const Operations& small_alphabet();

}  // namespace gpupool::model
