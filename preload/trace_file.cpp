// See trace_file.h.
#include "preload/trace_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "live/taken.h"
#include "live/write_all.h"

namespace gpupool {
namespace {

constexpr int kLevel = 1;  // of zstd: the program needs the processor more than we the disk

int create_new(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

std::string_view text_of(const unsigned char* bytes, std::size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

}  // namespace

struct TraceFile::Packer {
  Packer() : context(ZSTD_createCCtx()) {
    if (!context) throw std::bad_alloc();
  }
  ~Packer() { ZSTD_freeCCtx(context); }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  ZSTD_CCtx* const context;
};

TraceFile::TraceFile() : packer_(std::make_unique<Packer>()) {}

TraceFile::~TraceFile() { disown(); }

void TraceFile::disown() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

bool TraceFile::create(const std::string& path) {
  path_ = path;
  const Taken by = taken(path);
  if (by == Taken::kByDevice) file_ = open_device(path);
  if (by == Taken::kByOther) errno = EOPNOTSUPP;
  for (int suffix = 0; suffix < kMostSuffixes && (by == Taken::kByNone || by == Taken::kByFile); ++suffix) {
    path_ = suffixed(path, suffix);
    file_ = create_new(path_);
    if (file_ >= 0 || errno != EEXIST) break;
  }
  if (file_ < 0) return false;
  const TraceFileHead head;
  unsigned char raw[sizeof head];
  std::memcpy(raw, &head, sizeof head);
  end_ = sizeof head;
  return write_all(file_, text_of(raw, sizeof raw));
}

bool TraceFile::append(TraceBlockHead head, std::span<const unsigned char> payload) {
  if (file_ < 0) {
    errno = EBADF;
    return false;
  }
  packed_.resize(sizeof head + ZSTD_compressBound(payload.size()));
  const std::size_t packed = ZSTD_compressCCtx(packer_->context, packed_.data() + sizeof head,
                                               packed_.size() - sizeof head, payload.data(), payload.size(), kLevel);
  if (ZSTD_isError(packed)) {
    errno = ENOMEM;  // with room enough there is no other reason
    return false;
  }
  head.number = blocks_;
  head.payload = static_cast<std::uint32_t>(payload.size());
  head.packed = static_cast<std::uint32_t>(packed);
  head.checksum = trace_checksum(head, {packed_.data() + sizeof head, packed});
  std::memcpy(packed_.data(), &head, sizeof head);
  if (!write_all(file_, text_of(packed_.data(), sizeof head + packed))) {
    const int why = errno;
    // Half a block would be read as damage; where even this fails, the reader finds the next whole block.
    if (ftruncate(file_, static_cast<off_t>(end_)) == 0) lseek(file_, static_cast<off_t>(end_), SEEK_SET);
    errno = why;
    return false;
  }
  end_ += sizeof head + packed;
  ++blocks_;
  return true;
}

}  // namespace gpupool
