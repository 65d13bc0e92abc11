// Two ranks of a pipeline: each sends what it has computed into the other's inbox and posts a receive whose work waits
// for work that the other has yet to submit. Between the two, memory is freed and taken.
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/cases/programs/partner.h"
#include "tests/preload/core/kernels.h"

namespace {

using partner::Partner;
using program::Kernels;
using program::take;
using program::take_ordered;

constexpr std::uint32_t kBatches = 8;
constexpr std::size_t kBytes = std::size_t{1} << 20;

// A second thread in the process: the simulated driver then takes a wait for another process for one that may end.
class Idle {
 public:
  Idle() : thread_([this] { wait(); }) {}
  ~Idle() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

struct Mailbox {
  CUdeviceptr inbox = 0;  // a place for each batch
  CUdeviceptr flags = 0;  // one for each place: it is filled
};

struct Handles {
  CUipcMemHandle inbox;
  CUipcMemHandle flags;
};

Mailbox make_mailbox(Handles& handles) {
  const Mailbox own{take(kBatches * kBytes), take(kBatches * 4)};
  OK(cuMemsetD32(own.flags, 0, kBatches));
  OK(cuIpcGetMemHandle(&handles.inbox, own.inbox));
  OK(cuIpcGetMemHandle(&handles.flags, own.flags));
  OK(cuCtxSynchronize());
  return own;
}

Mailbox open_mailbox(const Handles& handles) {
  Mailbox other;
  OK(cuIpcOpenMemHandle(&other.inbox, handles.inbox, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuIpcOpenMemHandle(&other.flags, handles.flags, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return other;
}

// What a rank computes for a batch.
std::uint32_t seed_of(std::uint32_t rank, std::uint32_t batch) { return rank * 100 + batch; }

class Rank {
 public:
  Rank(std::uint32_t number, int line) : number_(number) {
    Handles handles{};
    own_ = make_mailbox(handles);
    partner::send(line, handles);
    other_ = open_mailbox(partner::receive<Handles>(line));
  }

  // Blocks of both kinds, freed while the copy that reads them may not have begun.
  void send(std::uint32_t batch) {
    const bool plain = batch % 2 == 0;
    const CUdeviceptr block = plain ? take(kBytes) : take_ordered(kBytes, sending_);
    kernels_.fill(sending_, block, kBytes, seed_of(number_, batch));
    OK(cuMemcpyDtoDAsync(other_.inbox + batch * kBytes, block, kBytes, sending_));
    kernels_.set_flag(sending_, other_.flags + batch * 4);
    OK(plain ? cuMemFree(block) : cuMemFreeAsync(block, sending_));
  }

  void receive(std::uint32_t batch) {
    kernels_.wait_flag(receiving_, own_.flags + batch * 4);
    const CUdeviceptr block = take_ordered(kBytes, receiving_);
    OK(cuMemcpyDtoDAsync(block, own_.inbox + batch * kBytes, kBytes, receiving_));
    kernels_.check(receiving_, block, kBytes, seed_of(1 - number_, batch));
    OK(cuMemFreeAsync(block, receiving_));
  }

  std::uint32_t wrong_bytes() { return kernels_.wrong_bytes(); }

 private:
  const std::uint32_t number_;
  Kernels kernels_;
  Mailbox own_;
  Mailbox other_;
  CUstream sending_ = program::new_stream();
  CUstream receiving_ = program::new_stream();
};

// The first rank sends before it receives, the second one the other way round.
void play(std::uint32_t number, int line) {
  const Idle idle;
  program::begin();
  Rank rank(number, line);
  for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
    if (number == 0) rank.send(batch);
    rank.receive(batch);
    if (number == 1) rank.send(batch);
  }
  EQUAL(rank.wrong_bytes(), 0u);
  partner::send(line, 'd');
  partner::receive<char>(line);  // the other one may read what is ours until now
}

}  // namespace

CASE(pipeline) {
  const Partner other("pipeline_other_rank");
  play(0, other.line());
}

CASE(pipeline_other_rank) { play(1, partner::other_side()); }

// Work that waits for an event of another process, which that one completes only when it hears that this one has gone
// on: freed behind such work, memory is its next owner's behind it, and nobody waits on the host.
CASE(event_of_another) {
  const Partner other("event_of_another_waited_for");
  const Idle idle;
  program::begin();
  Kernels kernels;
  const CUstream working = program::new_stream();
  const CUdeviceptr flag = take(4);
  CUevent event = nullptr;
  CUipcEventHandle handle{};
  OK(cuMemsetD32(flag, 0, 1));
  OK(cuCtxSynchronize());
  OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  kernels.wait_flag(working, flag);
  OK(cuIpcGetEventHandle(&handle, event));
  OK(cuEventRecord(event, working));
  partner::send(other.line(), handle);
  partner::receive<char>(other.line());
  kernels.set_flag(program::new_stream(), flag);
  OK(cuCtxSynchronize());
  partner::send(other.line(), 'd');
  partner::receive<char>(other.line());
  OK(cuEventDestroy(event));
}

CASE(event_of_another_waited_for) {
  const int line = partner::other_side();
  const Idle idle;
  program::begin();
  Kernels kernels;
  const CUstream behind = program::new_stream();
  const CUstream beside = program::new_stream();
  const bool frees_do_not_wait = std::getenv("TEST_POOLED") != nullptr;
  const CUdeviceptr plain = take(kBytes);
  const CUdeviceptr ordered = take_ordered(kBytes, behind);
  CUevent event = nullptr;
  OK(cuCtxSynchronize());
  OK(cuIpcOpenEventHandle(&event, partner::receive<CUipcEventHandle>(line)));
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuStreamWaitEvent(behind, event, 0));
  for (const CUdeviceptr block : {plain, ordered}) kernels.fill(behind, block, kBytes, 1);
  OK(cuMemFreeAsync(ordered, behind));
  if (frees_do_not_wait) OK(cuMemFree(plain));
  const CUdeviceptr next = take_ordered(kBytes, beside);
  const CUdeviceptr next_plain = take(kBytes);
  for (const CUdeviceptr block : {next, next_plain}) kernels.fill(beside, block, kBytes, 2);
  for (const CUdeviceptr block : {next, next_plain}) kernels.check(beside, block, kBytes, 2);
  partner::send(line, 'g');
  partner::receive<char>(line);
  EQUAL(kernels.wrong_bytes(), 0u);
  OK(cuEventQuery(event));
  OK(cuEventDestroy(event));
  partner::send(line, 'd');
}
