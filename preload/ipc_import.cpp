// See ipc_import.h.
#include "preload/ipc_import.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "device/context.h"
#include "device/shared_range.h"
#include "preload/process.h"

namespace gpupool {
namespace {

constexpr timeval kPatience{30, 0};  // for an exporter that is stopped or very busy

ShareQuestion question_of(const SharedHandle& handle, ShareVerb verb) {
  return {.verb = verb, .block = handle.block, .address = handle.address};
}

}  // namespace

/// The line to an exporter, kept as long as anything of its is open. One conversation at a time.
class Exporter {
 public:
  Exporter(const ExporterKey& key, Inherited& sockets)
      : sockets_(sockets), socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const ExporterAddress name = address_of(key);
    sockets_.add(socket_);
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    ucred peer{};
    socklen_t length = sizeof peer;
    connected_ = socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0 &&
                 getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && may_talk(peer.uid, geteuid());
  }
  ~Exporter() {
    close_descriptors();
    sockets_.remove(socket_);
    if (socket_ >= 0) close(socket_);
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// False also once an answer was missed: a later one would be taken for it.
  bool connected() const { return connected_; }

  /// Held from a block's first question to its last answer.
  std::unique_lock<std::mutex> converse() { return std::unique_lock(conversation_); }

  /// False: no answer, or none that makes sense.
  bool ask(const ShareQuestion& question, ShareAnswer& answer) {
    close_descriptors();
    connected_ = connected_ && tell(question) && hear(answer);
    return connected_;
  }

  bool tell(const ShareQuestion& question) const {
    return send(socket_, &question, sizeof question, MSG_NOSIGNAL) == sizeof question;
  }

  /// Valid until the next question.
  int descriptor(unsigned index) const { return descriptors_[index]; }

 private:
  bool hear(ShareAnswer& answer) {
    iovec body{&answer, sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(ShareAnswer::kMostPieces * sizeof(int))];
    msghdr message{};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) != sizeof answer) return false;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      received_ = static_cast<unsigned>((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(descriptors_, CMSG_DATA(header), received_ * sizeof(int));
    }
    return makes_sense(answer) && answer.pieces == received_ && !(message.msg_flags & MSG_CTRUNC);
  }

  void close_descriptors() {
    for (unsigned i = 0; i < received_; ++i) close(descriptors_[i]);
    received_ = 0;
  }

  std::mutex conversation_;
  Inherited& sockets_;
  const int socket_;
  std::atomic<bool> connected_{false};
  unsigned received_ = 0;
  int descriptors_[ShareAnswer::kMostPieces] = {};
};

namespace {

/// All pieces of a block, mapped side by side and usable by the current device. The first answer is here already.
CUresult map_pieces(Exporter& exporter, const SharedHandle& handle, ShareAnswer& answer, SharedRange& range) {
  CUdevice device = 0;
  CUresult result = setup().api.cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS) result = range.reserve(answer.span);
  std::uint64_t mapped = 0;
  for (ShareQuestion question = question_of(handle, ShareVerb::kMore); result == CUDA_SUCCESS;) {
    for (unsigned i = 0; i < answer.pieces && result == CUDA_SUCCESS; ++i) {
      result = range.add(exporter.descriptor(i), answer.bytes[i]);
      mapped += answer.bytes[i];
    }
    question.first += answer.pieces;
    if (mapped == range.bytes() || result != CUDA_SUCCESS) break;
    if (answer.pieces == 0 || !exporter.ask(question, answer) || answer.kind != ShareKind::kPieces)
      result = CUDA_ERROR_INVALID_VALUE;
  }
  if (result == CUDA_SUCCESS) result = range.open_to(device);
  if (result != CUDA_SUCCESS) range.close();
  return result;
}

}  // namespace

Imports::Imports() = default;
Imports::~Imports() = default;

CUresult Imports::open(const Guard&, const CUipcMemHandle& handle, CUcontext context, unsigned flags,
                       CUdeviceptr& address) try {
  {
    const std::lock_guard lock(mutex_);
    if (Entry* entry = known(handle, context)) {
      ++entry->users;
      address = entry->block.address;
      return CUDA_SUCCESS;
    }
  }
  Entry fresh;
  fresh.handle = handle;
  fresh.block.context = context;
  const CUresult result = map(flags, fresh);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  Entry* entry = known(handle, context);
  if (entry) {  // another thread was quicker
    unmap(fresh, Work::kDone);
  } else {
    entries_.push_back(std::move(fresh));
    entry = &entries_.back();
    count();
  }
  ++entry->users;
  address = entry->block.address;
  return CUDA_SUCCESS;
} catch (const std::exception&) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Several threads that open something of one exporter for the first time may come to have a line each.
std::shared_ptr<Exporter> Imports::exporter_of(const SharedHandle& shared) {
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      const auto other = unpack(entry.handle);
      if (other && other->exporter == shared.exporter && entry.exporter->connected()) return entry.exporter;
    }
  }
  return std::make_shared<Exporter>(shared.exporter, sockets_);
}

CUresult Imports::map(unsigned flags, Entry& entry) {
  if (const auto shared = unpack(entry.handle)) {
    entry.exporter = exporter_of(*shared);
    const auto conversation = entry.exporter->converse();
    const CUresult result = map_shared(*shared, flags, entry);
    if (result != CUDA_SUCCESS) entry.exporter->tell(question_of(*shared, ShareVerb::kClose));
    return result;
  }
  entry.block.requested = SizedHandle::size_of(entry.handle).value_or(0);
  const CUresult result = real::cuIpcOpenMemHandle_v2(&entry.slab, entry.handle, flags);
  entry.block.address = entry.slab;
  return result;
}

CUresult Imports::map_shared(const SharedHandle& handle, unsigned flags, Entry& entry) {
  Exporter& exporter = *entry.exporter;
  ShareAnswer answer;
  if (!exporter.ask(question_of(handle, ShareVerb::kOpen), answer)) return CUDA_ERROR_INVALID_VALUE;
  entry.block.requested = answer.requested;
  switch (answer.kind) {
    case ShareKind::kRefused:
      break;
    case ShareKind::kSlab: {
      const CUresult result = real::cuIpcOpenMemHandle_v2(&entry.slab, answer.slab, flags);
      entry.block.address = entry.slab + answer.offset;
      return result;
    }
    case ShareKind::kPieces: {
      if (!setup().api.has_vmm() || !setup().api.has_shareable_handles()) return CUDA_ERROR_NOT_SUPPORTED;
      entry.range = std::make_unique<SharedRange>(setup().api);
      const std::uint64_t offset = answer.offset;
      const CUresult result = map_pieces(exporter, handle, answer, *entry.range);
      entry.block.address = entry.range->begin() + offset;
      return result;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Work that may still run cannot reach a range that is gone, but it can reach a slab that is open for another block.
void Imports::unmap(Entry& entry, Work work) {
  if (entry.range)
    entry.range->close();
  else
    real::cuIpcCloseMemHandle(entry.slab);
  const auto shared = unpack(entry.handle);
  if (shared && (entry.range || work == Work::kDone)) entry.exporter->tell(question_of(*shared, ShareVerb::kClose));
}

Imports::Closed Imports::close(const Guard&, CUdeviceptr address) {
  std::unique_lock lock(mutex_);
  const auto found = std::ranges::find(entries_, address, [](const Entry& entry) { return entry.block.address; });
  if (found == entries_.end()) {
    const bool below = std::ranges::find(entries_, address, &Entry::slab) != entries_.end();
    return below ? Closed::kNotOpen : Closed::kNotOurs;
  }
  if (--found->users != 0) return Closed::kYes;
  Entry gone = std::move(*found);
  entries_.erase(found);
  count();
  lock.unlock();
  // Addresses of virtual memory are taken away without waiting for work on them.
  const ContextGuard current(setup().api, gone.block.context);
  Work work = Work::kMayRun;
  if (const auto no_begin = process().captures.hold_off_begins(); current.ok() && !process().captures.any_open()) {
    if (setup().api.cuCtxSynchronize() == CUDA_SUCCESS) work = Work::kDone;
  }
  unmap(gone, work);
  return Closed::kYes;
}

void Imports::context_gone(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.block.context != context || !entry.range) continue;
    entry.range->close();
    entry.exporter->tell(question_of(*unpack(entry.handle), ShareVerb::kClose));
  }
  std::erase_if(entries_, [context](const Entry& entry) { return entry.block.context == context; });
  count();
}

bool Imports::find(CUdeviceptr address, ImportedBlock& block) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (address < entry.block.address || address >= entry.block.address + entry.block.requested) continue;
    block = entry.block;
    return true;
  }
  return false;
}

Imports::Entry* Imports::known(const CUipcMemHandle& handle, CUcontext context) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return std::memcmp(&entry.handle, &handle, sizeof handle) == 0 && entry.block.context == context;
  });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace gpupool
