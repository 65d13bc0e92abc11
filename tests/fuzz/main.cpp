// For compilers without libFuzzer: plays each file of a folder, and many damaged ones made from it. The same every
// time.
//   fuzz_TARGET FOLDER [ROUNDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_all(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Bytes> all;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

class Damage {
 public:
  explicit Damage(const std::vector<Bytes>& corpus) : corpus_(corpus) {}

  Bytes next() {
    Bytes bytes = corpus_[pick(corpus_.size())];
    for (std::size_t times = 1 + pick(6); times > 0; --times) once(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t kLongest = 1 << 16;

  std::size_t pick(std::size_t n) { return random_() % std::max<std::size_t>(n, 1); }
  long place(const Bytes& bytes) { return static_cast<long>(pick(bytes.size() + 1)); }

  void once(Bytes& bytes) {
    const long at = place(bytes);
    const long end = std::min<long>(at + static_cast<long>(pick(32)), static_cast<long>(bytes.size()));
    switch (pick(6)) {
      case 0:  // a bit
        if (!bytes.empty()) bytes[pick(bytes.size())] ^= static_cast<std::uint8_t>(1 << pick(8));
        break;
      case 1:  // a byte that means something to somebody
        if (!bytes.empty()) bytes[pick(bytes.size())] = kTelling[pick(sizeof kTelling)];
        break;
      case 2:
        bytes.erase(bytes.begin() + at, bytes.begin() + end);
        break;
      case 3: {  // a piece once more
        const Bytes piece(bytes.begin() + at, bytes.begin() + end);
        if (bytes.size() < kLongest) bytes.insert(bytes.begin() + place(bytes), piece.begin(), piece.end());
        break;
      }
      case 4: {  // a piece of another
        const Bytes& other = corpus_[pick(corpus_.size())];
        const std::size_t from = pick(other.size());
        const std::size_t length = pick(std::min<std::size_t>(other.size() - from, 64) + 1);
        bytes.insert(bytes.begin() + at, other.begin() + static_cast<long>(from),
                     other.begin() + static_cast<long>(from + length));
        break;
      }
      case 5:  // the rest is missing
        if (pick(4) == 0) bytes.resize(static_cast<std::size_t>(at));
        break;
    }
  }

  static constexpr std::uint8_t kTelling[] = {0,   1,   '\n', '"', '%', ',', '-', '.', '0', '9',
                                              '[', '{', '}',  127, 128, 254, 255, ' ', '=', '\\'};
  const std::vector<Bytes>& corpus_;
  std::mt19937_64 random_{1};
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const std::vector<Bytes> corpus = read_all(words[1]);
  if (corpus.empty()) return 2;
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  Damage damage(corpus);
  const long rounds = count > 2 ? std::atol(words[2]) : 0;
  for (long round = 0; round < rounds; ++round) {
    const Bytes bytes = damage.next();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("fuzz: %zu inputs, %ld damaged ones\n", corpus.size(), rounds);
  return 0;
}
