// See ipc_export.h.
#include "preload/ipc_export.h"

#include <poll.h>
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

constexpr timeval kPatience{10, 0};  // for an importer that does not take its answer
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
  const auto [entry, fresh] = exports_.try_emplace(block.address);
  if (!home.tape()->share(block.address, Sharing::kAnnounced)) {
    if (fresh) exports_.erase(entry);
    return false;
  }
  if (fresh || entry->second.block != block.buffer_id) entry->second = {&home, block.buffer_id, slab};
  any_ = true;
  handle = pack({.exporter = key_, .block = block.buffer_id, .address = block.address});
  return true;
} catch (const std::exception&) {
  return false;
}

bool Exports::gave(const SharedHandle& handle) const {
  const std::lock_guard lock(mutex_);
  return thread_.joinable() && handle.exporter == key_;
}

void Exports::free_one(const Guard&, std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto entry = exports_.find(address);
  if (entry == exports_.end() || entry->second.freed) return;
  entry->second.freed = true;
  if (entry->second.users == 0) end(entry);
}

// Nobody has it, and nobody will.
void Exports::end(Table::iterator entry) {
  if (entry->second.home->serves()) entry->second.home->tape()->release(entry->first);
  exports_.erase(entry);
  any_ = !exports_.empty();
}

bool Exports::start() {
  if (thread_.joinable()) return true;
  key_ = random_key();
  socket_ = listening_socket(key_);
  if (socket_ < 0) return false;
  sockets_.add(socket_);
  try {
    thread_ = quiet_thread([this, listening = socket_.load()] { serve(listening); });
  } catch (const std::system_error&) {
    sockets_.remove(socket_);
    ::close(socket_.exchange(-1));
    return false;
  }
  return true;
}

void Exports::stop() {
  if (socket_.exchange(-1) < 0) return;
  sockets_.each([](int each) { shutdown(each, SHUT_RDWR); });
  if (thread_.joinable()) thread_.join();
}

void Exports::serve(int listening) {
  const Guard guard;
  std::vector<Importer> importers;
  while (socket_ >= 0) {
    try {
      wait_for_one(listening, importers);
    } catch (const std::bad_alloc&) {
      usleep(kBreathUs);
    }
  }
  const auto leave = [this](int socket) {
    sockets_.remove(socket);
    ::close(socket);
  };
  for (const Importer& importer : importers) leave(importer.connection);
  leave(listening);
}

void Exports::wait_for_one(int listening, std::vector<Importer>& importers) {
  std::vector<pollfd> waiting;
  for (const Importer& importer : importers) waiting.push_back({importer.connection, POLLIN, 0});
  waiting.push_back({listening, POLLIN, 0});
  importers.reserve(importers.size() + 1);
  if (poll(waiting.data(), waiting.size(), -1) <= 0) return;
  if (waiting.back().revents != 0 && socket_ >= 0) accept_one(listening, importers);
  for (std::size_t i = waiting.size() - 1; i-- > 0;) {
    if (waiting[i].revents == 0 || listen_to(importers[i])) continue;
    lost(importers[i]);
    importers.erase(importers.begin() + static_cast<long>(i));
  }
}

void Exports::accept_one(int listening, std::vector<Importer>& importers) {
  const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) {
    usleep(kBreathUs);  // out of descriptors, or about to end
  } else if (!is_of_our_user(connection)) {
    ::close(connection);
  } else {
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    sockets_.add(connection);
    importers.push_back({connection, {}});
  }
}

// False: it has gone, or says what makes no sense.
bool Exports::listen_to(Importer& importer) {
  ShareQuestion question;
  if (recv(importer.connection, &question, sizeof question, MSG_DONTWAIT) != sizeof question ||
      question.magic != SharedHandle::kMagic)
    return false;
  switch (question.verb) {
    case ShareVerb::kOpen:
    case ShareVerb::kMore:
      answer(question, importer);
      return true;
    case ShareVerb::kClose:
      close(question, importer);
      return true;
  }
  return false;
}

Exports::Table::iterator Exports::find(const ShareQuestion& question) {
  const auto entry = exports_.find(question.address);
  return entry != exports_.end() && entry->second.block == question.block ? entry : exports_.end();
}

void Exports::close(const ShareQuestion& question, Importer& importer) {
  const auto same = [&](const ShareQuestion& open) { return open.block == question.block; };
  const auto opened = std::ranges::find_if(importer.open, same);
  if (opened == importer.open.end()) return;
  importer.open.erase(opened);
  const std::lock_guard lock(mutex_);
  const auto entry = find(question);
  if (entry != exports_.end() && --entry->second.users == 0 && entry->second.freed) end(entry);
}

// It ended without a word, and its last work may outlive its sockets: what it had is not used again.
void Exports::lost(const Importer& importer) {
  const std::lock_guard lock(mutex_);
  for (const ShareQuestion& open : importer.open) {
    const auto entry = find(open);
    if (entry == exports_.end()) continue;
    if (entry->second.home->serves()) entry->second.home->tape()->share(open.address, Sharing::kReferenced);
    if (--entry->second.users == 0 && entry->second.freed) exports_.erase(entry);
  }
  sockets_.remove(importer.connection);
  ::close(importer.connection);
}

// A block that has been freed is refused, as is one whose context has gone. It cannot be freed meanwhile: its free
// waits for the table. The descriptors are ours only for as long as it takes to send them.
void Exports::answer(const ShareQuestion& question, Importer& importer) try {
  ShareAnswer answer;
  std::vector<int> descriptors;
  if (std::unique_lock lock(mutex_); describe(question, answer, descriptors) && question.verb == ShareVerb::kOpen) {
    importer.open.push_back(question);
    ++find(question)->second.users;
  }
  send_with(importer.connection, answer, descriptors);
  for (const int descriptor : descriptors) ::close(descriptor);
} catch (const std::exception&) {
  return;  // no host memory: the importer gets no answer and says so
}

bool Exports::describe(const ShareQuestion& question, ShareAnswer& answer, std::vector<int>& descriptors) {
  const auto entry = find(question);
  if (entry == exports_.end() || entry->second.freed || !entry->second.home->serves()) return false;
  const Export& found = entry->second;
  BlockInfo block;
  if (!found.home->tape()->find(question.address, block) || block.buffer_id != question.block) return false;
  answer.requested = block.requested;
  if (found.slab) {
    answer.kind = ShareKind::kSlab;
    answer.slab = found.slab->handle;
    answer.offset = found.slab->offset;
    return true;
  }
  answer.kind = ShareKind::kPieces;
  std::uint64_t index = 0;
  found.home->tape()->visit_handles(question.address, [&](const Handle& handle, std::uint64_t begin) {
    if (answer.span == 0) answer.offset = question.address - begin;
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
  return answer.kind == ShareKind::kPieces;
}

}  // namespace gpupool
