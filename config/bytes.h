// Sizes as the user may write them and as the pool counts them.
// Bytes is a plain 64-bit count; Share is a part of a card, kept as an integer so that 92% means the same everywhere;
// SizeOrShare is one or the other and becomes Bytes once the card's total is known. Immutable values, no lock, no I/O.
// Kept light on purpose: pool/ includes this file.
#pragma once
#include <compare>
#include <cstdint>

namespace gpupool {

using Bytes = std::uint64_t;

inline namespace literals {
constexpr Bytes operator""_KiB(unsigned long long count) { return Bytes{count} << 10; }
constexpr Bytes operator""_MiB(unsigned long long count) { return Bytes{count} << 20; }
constexpr Bytes operator""_GiB(unsigned long long count) { return Bytes{count} << 30; }
constexpr Bytes operator""_TiB(unsigned long long count) { return Bytes{count} << 40; }
}  // namespace literals

// CUDA's smallest piece of physical device memory on every card so far; handles are multiples of it.
inline constexpr Bytes kHandleGranularity = 2_MiB;

// A part of a whole, above 0 up to all of it; 0 only as "no share given".
struct Share {
  static constexpr std::uint32_t kWhole = 1'000'000'000;
  std::uint32_t parts_per_billion = 0;

  // Rounded down to a byte.
  constexpr Bytes of(Bytes total) const {
    return static_cast<Bytes>(static_cast<unsigned __int128>(total) * parts_per_billion / kWhole);
  }
  auto operator<=>(const Share&) const = default;
};

// Absolute bytes, or a share of the card's total memory (never of what happens to be free).
struct SizeOrShare {
  Bytes bytes = 0;
  Share share;

  constexpr bool is_share() const { return share.parts_per_billion != 0; }
  constexpr Bytes of(Bytes total) const { return is_share() ? share.of(total) : bytes; }
  bool operator==(const SizeOrShare&) const = default;
};

// The least step of growth: fixed, or by a factor of what the pool holds (1.5x of 4 GiB grows by 2 GiB).
struct GrowthStep {
  Bytes step = 0;
  std::uint32_t factor_thousandths = 0;  // 0: step applies

  constexpr bool is_factor() const { return factor_thousandths != 0; }
  constexpr Bytes step_from(Bytes held) const {
    if (!is_factor()) return step;
    return static_cast<Bytes>(static_cast<unsigned __int128>(held) * (factor_thousandths - 1000) / 1000);
  }
  bool operator==(const GrowthStep&) const = default;
};

// The size of one handle, or "auto": the pool chooses by its own size.
struct HandleSize {
  Bytes bytes = 0;

  constexpr bool automatic() const { return bytes == 0; }
  bool operator==(const HandleSize&) const = default;
};

}  // namespace gpupool
