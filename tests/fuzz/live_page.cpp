// A live page that somebody has written into, as every reader meets it: copied, checked, reported. The input is a list
// of changes to a whole page (where, how many bytes, the bytes), behind two bytes that say where the file ends.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "live/reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/live/page_file.h"

namespace {

constexpr std::uint64_t kPools = 3;

struct Original {
  Original() : bytes(reinterpret_cast<const char*>(&file.page()), gpupool::page_file_bytes(kPools)) {}
  gpupool::tests::PageFile file{kPools};
  std::string bytes;
};

// Changes [where: 4 bytes, count: 1 byte, bytes] for as long as there are any.
void change(std::string& page, const std::uint8_t* data, std::size_t size) {
  while (size > 5) {
    std::uint32_t where = 0;
    std::memcpy(&where, data, sizeof where);
    where %= static_cast<std::uint32_t>(page.size());
    const std::size_t count = std::min({std::size_t{data[4]}, size - 5, page.size() - where});
    std::memcpy(page.data() + where, data + 5, count);
    data += 5 + count;
    size -= 5 + count;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const Original original;
  std::string page = original.bytes;
  change(page, data + 2, size - 2);
  std::uint16_t end = 0;  // 0: the whole page
  std::memcpy(&end, data, sizeof end);
  if (end != 0) page.resize(page.size() * end / 65536);
  const std::string& path = original.file.path();
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool written = file >= 0 && ftruncate(file, off_t(page.size())) == 0 &&
                       pwrite(file, page.data(), page.size(), 0) == ssize_t(page.size());
  close(file);
  if (!written) std::abort();
  std::string problem;
  if (const auto copy = gpupool::read_page(path, problem)) {
    const gpupool::Report report = copy->report();
    static_cast<void>(gpupool::report_text(report));
    static_cast<void>(gpupool::report_json(report));
  }
  return 0;
}
