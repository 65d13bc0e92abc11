// See ipc_export.h.
#include "preload/ipc_export.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <random>
#include <vector>

#include "preload/quiet_thread.h"

namespace gpupool {
namespace {

constexpr timeval kPatience{10, 0};  // for an importer that has connected and says nothing
constexpr int kWaiting = 64;
constexpr useconds_t kBreathUs = 1000;

ExporterKey random_key() {
  std::random_device source;
  ExporterKey key;
  std::ranges::generate(key, [&] { return static_cast<unsigned char>(source()); });
  return key;
}

int listening_socket(const ExporterKey& key) {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const ExporterAddress name = address_of(key);
  if (made >= 0 && bind(made, reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0 &&
      listen(made, kWaiting) == 0)
    return made;
  if (made >= 0) close(made);
  return -1;
}

bool is_of_our_user(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && may_talk(peer.uid, geteuid());
}

void send_with(int connection, const ShareAnswer& answer, const std::vector<int>& descriptors) {
  iovec body{const_cast<ShareAnswer*>(&answer), sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(ShareAnswer::kMostPieces * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  sendmsg(connection, &message, MSG_NOSIGNAL);
}

}  // namespace

bool Exports::add(const Guard&, Home& home, const BlockInfo& block, const std::optional<Slab>& slab,
                  CUipcMemHandle& handle) try {
  const std::lock_guard lock(mutex_);
  if (!start()) return false;
  exports_.insert_or_assign(block.buffer_id, Export{&home, block.address, slab});
  handle = pack({.exporter = key_, .block = block.buffer_id});
  return true;
} catch (const std::exception&) {
  return false;
}

bool Exports::gave(const SharedHandle& handle) const {
  const std::lock_guard lock(mutex_);
  return thread_.joinable() && handle.exporter == key_;
}

bool Exports::start() {
  if (thread_.joinable()) return true;
  key_ = random_key();
  socket_ = listening_socket(key_);
  if (socket_ < 0) return false;
  try {
    thread_ = quiet_thread([this] { serve(); });
  } catch (const std::system_error&) {
    close(socket_.exchange(-1));
    return false;
  }
  return true;
}

void Exports::stop() {
  const int listening = socket_.exchange(-1);
  if (listening < 0) return;
  shutdown(listening, SHUT_RDWR);
  if (const int connection = connection_.load(); connection >= 0) shutdown(connection, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  close(listening);
}

void Exports::abandon() {
  if (const int inherited = socket_.load(); inherited >= 0) close(inherited);
  if (const int inherited = connection_.load(); inherited >= 0) close(inherited);
}

void Exports::serve() {
  const Guard guard;
  for (int listening = socket_; listening >= 0; listening = socket_) {
    const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      usleep(kBreathUs);  // out of descriptors, or about to end
      continue;
    }
    connection_ = connection;
    if (is_of_our_user(connection)) talk(connection);
    connection_ = -1;
    close(connection);
  }
}

void Exports::talk(int connection) const {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  ShareQuestion question;
  while (socket_ >= 0 && recv(connection, &question, sizeof question, 0) == sizeof question &&
         question.magic == SharedHandle::kMagic) {
    answer(question, connection);
  }
}

// A block that has been freed is refused, as is one whose context has gone; the descriptors are ours only for as long
// as it takes to send them.
void Exports::answer(const ShareQuestion& question, int connection) const try {
  ShareAnswer answer;
  std::vector<int> descriptors;
  Export found;
  {
    const std::lock_guard lock(mutex_);
    if (const auto entry = exports_.find(question.block); entry != exports_.end()) found = entry->second;
  }
  BlockInfo block;
  if (found.home && found.home->serves() && found.home->tape()->find(found.address, block) &&
      block.buffer_id == question.block) {
    answer.requested = block.requested;
    if (found.slab) {
      answer.kind = ShareKind::kSlab;
      answer.slab = found.slab->handle;
      answer.offset = found.slab->offset;
    } else {
      answer.kind = ShareKind::kPieces;
      std::uint64_t index = 0;
      found.home->tape()->visit_handles(block.address, [&](const Handle& handle, std::uint64_t begin) {
        if (answer.span == 0) answer.offset = block.address - begin;
        answer.span += handle.bytes;
        if (index++ < question.first || answer.pieces == ShareAnswer::kMostPieces) return true;
        int descriptor = -1;
        if (!found.home->share(handle, descriptor).ok()) {
          answer.kind = ShareKind::kRefused;
          return false;
        }
        descriptors.push_back(descriptor);
        answer.bytes[answer.pieces++] = handle.bytes;
        return true;
      });
    }
  }
  send_with(connection, answer, descriptors);
  for (const int descriptor : descriptors) close(descriptor);
} catch (const std::exception&) {
  return;  // no host memory: the importer gets no answer and says so
}

}  // namespace gpupool
