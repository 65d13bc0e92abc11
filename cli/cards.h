// The cards of this machine as NVIDIA's management library sees them: what each has and who uses it. Needs no CUDA
// context, so looking changes nothing. Nothing is linked: where the library is missing, there are no cards to see.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gpupool::cli {

struct CardUser {
  std::uint64_t pid = 0;
  std::uint64_t bytes = 0;  // 0: the library does not tell
};

struct Card {
  unsigned index = 0;
  std::string name;
  std::string uuid;
  std::uint64_t total = 0;
  std::uint64_t used = 0;  // by everybody, the driver's own share included
  std::vector<CardUser> users;
};

/// Empty without the library, or without a card that it may be asked for. Loads the library once and keeps it.
std::vector<Card> cards_seen();

/// Of NVIDIA's kernel driver, such as "570.86.15"; empty where it is not known.
std::string driver_release();

}  // namespace gpupool::cli
