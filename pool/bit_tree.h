// A set of small numbers as a tree of bits: a bit for each number, above it a bit for each word that is not empty, and
// so on up to one word. Finds the greatest member not above a number by looking at two words a level, at most. Its
// memory is zeros that cost nothing until touched, so a set over a wide range costs what its members touch. Owned by
// one structure, under its owner's lock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace gpupool {

class BitTree {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// A set of numbers below `bits`, empty. Throws std::bad_alloc.
  explicit BitTree(std::uint64_t bits) {
    std::uint64_t words = 0;
    std::array<std::uint64_t, kMaxLevels> begin{};
    do {
      bits = (bits + 63) / 64;
      begin[levels_++] = words;
      words += bits;
    } while (bits > 1);
    memory_.reset(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t))));
    if (memory_ == nullptr) throw std::bad_alloc();
    for (unsigned level = 0; level < levels_; ++level) level_[level] = memory_.get() + begin[level];
  }

  bool contains(std::uint64_t number) const { return (level_[0][number / 64] >> number % 64 & 1) != 0; }

  void insert(std::uint64_t number) {
    for (unsigned level = 0; level < levels_; ++level) {
      std::uint64_t& word = level_[level][number / 64];
      const std::uint64_t before = word;
      word = before | std::uint64_t{1} << number % 64;
      if (before != 0) return;
      number /= 64;
    }
  }

  void erase(std::uint64_t number) {
    for (unsigned level = 0; level < levels_; ++level) {
      std::uint64_t& word = level_[level][number / 64];
      word &= ~(std::uint64_t{1} << number % 64);
      if (word != 0) return;
      number /= 64;
    }
  }

  /// The greatest member <= `number`, or kNone.
  std::uint64_t at_most(std::uint64_t number) const {
    for (unsigned level = 0; level < levels_; ++level) {
      const std::uint64_t here = level_[level][number / 64] & ~std::uint64_t{0} >> (63 - number % 64);
      number /= 64;
      if (here != 0) {
        std::uint64_t member = number * 64 + highest(here);
        while (level-- > 0) member = member * 64 + highest(level_[level][member]);
        return member;
      }
      if (number-- == 0) break;
    }
    return kNone;
  }

 private:
  struct Free {
    void operator()(std::uint64_t* memory) const { std::free(memory); }
  };
  static constexpr unsigned kMaxLevels = 11;
  static unsigned highest(std::uint64_t word) { return 63u - static_cast<unsigned>(std::countl_zero(word)); }

  std::unique_ptr<std::uint64_t[], Free> memory_;
  std::array<std::uint64_t*, kMaxLevels> level_{};
  unsigned levels_ = 0;
};

}  // namespace gpupool
