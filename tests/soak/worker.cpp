// See torture.h: what one thread does, one random operation after the other.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/soak/torture.h"

namespace torture {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::shared_mutex forks;  // shared by forks, alone to begin exit()
bool exit_begun = false;

}  // namespace

void begin_exit() {
  const std::unique_lock alone(forks);
  exit_begun = true;
}

Worker::Worker(const Options& options, unsigned number, Card& card, Counters& counters, Counts& counts)
    : options_(options),
      card_(card),
      counters_(counters),
      counts_(counts),
      random_(options.seed * 1000003 + number),
      next_seed_(number * 100'000'000 + 1) {}

void Worker::run() {
  if (!ok(cuCtxSetCurrent(card_.context), "cuCtxSetCurrent")) return;
  for (unsigned i = 0; i < options_.streams; ++i) add_stream(i % 3 == 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
  for (CUstream stream : {CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) streams_.push_back({stream, counters_.slot()});
  const double end = now_seconds() + options_.seconds;
  for (std::uint64_t i = 0; i < options_.operations && !lost_; ++i) {
    if (i % 16 == 0 && now_seconds() > end) break;
    step();
    ++counts_.operations;
  }
  while (!held_.empty()) release(held_.size() - 1);
  for (const Stream& stream : streams_) {
    ok(cuStreamSynchronize(stream.handle), "cuStreamSynchronize");
    if (stream.own) ok(cuStreamDestroy(stream.handle), "cuStreamDestroy");
  }
}

void Worker::add_stream(unsigned flags) {
  CUstream stream = nullptr;
  if (ok(cuStreamCreate(&stream, flags), "cuStreamCreate"))
    streams_.push_back({stream, counters_.slot(), true, flags != CU_STREAM_NON_BLOCKING});
}

// A card has queues of some length, and a thread that has filled them would stand for long.
void Worker::catch_up() {
  for (const Stream& stream : streams_) ok(cuStreamSynchronize(stream.handle), "cuStreamSynchronize");
  launches_ = 0;
}

void Worker::step() {
  if (launches_ >= options_.backlog) catch_up();
  if (held_.empty() || (live_ < options_.live && pick(3) == 0)) return allocate();
  const std::size_t block = pick_block();
  switch (pick(32)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
      return release(block);
    case 10:
    case 11:
    case 12:
      return check(block);
    case 13:
    case 14:
      return refill(block);
    case 15:
    case 16:
    case 17:
    case 18:
      return move(block, pick_stream());
    case 19:
    case 20:
      return send(block);
    case 21:
    case 22:
      return receive();
    case 23: {
      std::uint64_t microseconds = 1 + pick(300);
      void* parameters[] = {&microseconds};
      return launch(card_.spin, pick_stream(), parameters);
    }
    case 24:
      if (pick(4) == 0) capture();
      return;
    case 25:
      if (pick(4) == 0) renew_stream();
      return;
    case 26:
      return ask(block);
    case 27:
      if (pick(16) == 0) trim();
      return;
    case 28:
      if (pick(8) == 0) ok(cuStreamSynchronize(streams_[pick_stream()].handle), "cuStreamSynchronize");
      return;
    case 29:
      if (const std::unique_lock alone(card_.captures, std::try_to_lock); alone && pick(32) == 0)
        ok(cuCtxSynchronize(), "cuCtxSynchronize");
      return;
    case 30:
      if (options_.forks && pick(32) == 0) fork_child();
      return;
    default:
      return allocate();
  }
}

// Small sizes often, large ones seldom: every power of two is as likely as another.
std::uint64_t Worker::random_bytes() {
  const double power = std::uniform_real_distribution<double>(0, std::log2(double(options_.largest)))(random_);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::exp2(power)));
}

void Worker::allocate() {
  Block block{0, random_bytes(), next_seed_++};
  const std::size_t stream = pick_stream();
  const bool plain = block.plain = pick(3) == 0;
  const CUresult result = plain ? cuMemAlloc(&block.address, block.bytes)
                                : cuMemAllocAsync(&block.address, block.bytes, streams_[stream].handle);
  if (result == CUDA_ERROR_OUT_OF_MEMORY || (result != CUDA_SUCCESS && options_.tolerate)) {
    ++counts_.refused;
    if (!held_.empty()) release(pick_block());
    return;
  }
  if (!ok(result, plain ? "cuMemAlloc" : "cuMemAllocAsync")) return;
  held_.push_back({block, stream});
  live_ += block.bytes;
  fill(block, stream);
}

void Worker::release(std::size_t index) {
  const Held held = held_[index];
  verify(held.block, held.stream);
  std::size_t stream = held.stream;
  if (pick(4) == 0) {
    const std::size_t other = pick_stream();
    if (!order(stream, other)) return forget(index);
    stream = other;
  }
  forget(index);
  if (pick(3) != 0) {
    ok(cuMemFreeAsync(held.block.address, streams_[stream].handle), "cuMemFreeAsync");
    return;
  }
  // A plain free waits for the whole device, or behaves as if it did; but not for work on stream-ordered memory.
  if (held.block.plain || ok(cuStreamSynchronize(streams_[stream].handle), "cuStreamSynchronize"))
    ok(cuMemFree(held.block.address), "cuMemFree");
}

void Worker::forget(std::size_t index) {
  live_ -= held_[index].block.bytes;
  held_[index] = held_.back();
  held_.pop_back();
}

void Worker::check(std::size_t index) { verify(held_[index].block, held_[index].stream); }

void Worker::refill(std::size_t index) {
  Held& held = held_[index];
  verify(held.block, held.stream);
  held.block.seed = next_seed_++;
  fill(held.block, held.stream);
}

void Worker::move(std::size_t index, std::size_t to) {
  if (order(held_[index].stream, to)) held_[index].stream = to;
}

void Worker::send(std::size_t index) {
  const Held held = held_[index];
  CUevent event = nullptr;
  if (!ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate")) return;
  if (!ok(cuEventRecord(event, streams_[held.stream].handle), "cuEventRecord")) {
    ok(cuEventDestroy(event), "cuEventDestroy");
    return;
  }
  forget(index);
  const std::lock_guard lock(card_.mutex);
  card_.parcels.push_back({held.block, event});
}

void Worker::receive() {
  Parcel parcel;
  {
    const std::lock_guard lock(card_.mutex);
    if (card_.parcels.empty()) return;
    const std::size_t which = pick(static_cast<unsigned>(card_.parcels.size()));
    parcel = card_.parcels[which];
    card_.parcels[which] = card_.parcels.back();
    card_.parcels.pop_back();
  }
  const std::size_t stream = pick_stream();
  const bool ordered = ok(cuStreamWaitEvent(streams_[stream].handle, parcel.event, 0), "cuStreamWaitEvent") ||
                       ok(cuEventSynchronize(parcel.event), "cuEventSynchronize");
  ok(cuEventDestroy(parcel.event), "cuEventDestroy");
  if (!ordered) return;  // never touched again
  held_.push_back({parcel.block, stream});
  live_ += parcel.block.bytes;
  verify(parcel.block, stream);
}

// A graph that checks and refills a block, made by a capture during which this thread and others allocate and free.
void Worker::capture() {
  const Held held = held_[pick_block()];
  const std::size_t on = pick_stream();
  const Stream stream = streams_[on];
  if (stream.blocking) return;
  const std::shared_lock open(card_.captures);
  if (!ok(cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture")) return;
  verify(held.block, on);
  fill(held.block, on);
  for (unsigned i = pick(6); i > 0; --i) {
    Block block{0, random_bytes(), next_seed_++};
    std::size_t other = pick_stream();
    if (other == on || streams_[other].handle == CU_STREAM_LEGACY) continue;
    if (cuMemAllocAsync(&block.address, block.bytes, streams_[other].handle) != CUDA_SUCCESS) continue;
    fill(block, other);
    verify(block, other);
    if (pick(2) == 0) {
      ok(cuMemFreeAsync(block.address, streams_[other].handle), "cuMemFreeAsync");
    } else {
      held_.push_back({block, other});
      live_ += block.bytes;
    }
  }
  CUgraph graph = nullptr;
  if (!ok(cuStreamEndCapture(stream.handle, &graph), "cuStreamEndCapture")) return;
  CUgraphExec executable = nullptr;
  if (ok(cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiate")) {
    // In the block's own order: behind what its stream has, and before what comes next there.
    if (order(held.stream, on)) {
      for (int i = 0; i < 2; ++i) ok(cuGraphLaunch(executable, stream.handle), "cuGraphLaunch");
      if (!order(on, held.stream)) lost_ = true;
    }
    ok(cuGraphExecDestroy(executable), "cuGraphExecDestroy");
  }
  ok(cuGraphDestroy(graph), "cuGraphDestroy");
}

// The stream goes while it has work; its blocks go on to another.
void Worker::renew_stream() {
  const std::size_t old_one = pick_stream();
  const Stream gone = streams_[old_one];
  const std::size_t fresh = streams_.size();
  if (gone.own) add_stream(CU_STREAM_NON_BLOCKING);
  if (streams_.size() == fresh) return;
  const bool ordered = order(old_one, fresh);
  if (ordered) std::swap(streams_[old_one], streams_[fresh]);
  ok(cuStreamDestroy(streams_[fresh].handle), "cuStreamDestroy");
  streams_.pop_back();
}

// The driver's answers name the block itself, whatever lies below it.
void Worker::ask(std::size_t index) {
  const Block& block = held_[index].block;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (ok(cuMemGetAddressRange(&base, &bytes, block.address + block.bytes / 2), "cuMemGetAddressRange") &&
      (base != block.address || bytes < block.bytes) && !options_.tolerate) {
    std::printf("torture: the range of a block of %llu bytes is another's\n",
                static_cast<unsigned long long>(block.bytes));
    ++counts_.errors;
  }
  std::size_t free = 0;
  std::size_t total = 0;
  if (ok(cuMemGetInfo(&free, &total), "cuMemGetInfo") && free > total) ++counts_.errors;
}

void Worker::trim() {
  CUmemoryPool pool = nullptr;
  if (ok(cuDeviceGetDefaultMemPool(&pool, card_.device), "cuDeviceGetDefaultMemPool"))
    ok(cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
}

void Worker::fork_child() {
  const bool wanted = options_.forked_exits && pick(2) == 0;
  std::fflush(nullptr);
  std::shared_lock before_exit(forks);
  const bool whole_exit = wanted && !exit_begun;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kLastSeconds);
    if (whole_exit) std::exit(0);  // through destructors, whatever other threads had locked
    _exit(0);
  }
  before_exit.unlock();
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (child > 0 && status != 0) {
    std::printf("torture: a forked child ended with status %d\n", status);
    ++counts_.errors;
  }
}

bool Worker::ok(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return true;
  if (!options_.tolerate) {
    std::printf("torture: %s answered %d\n", what, static_cast<int>(result));
    ++counts_.errors;
    lost_ = true;
  }
  return false;
}

/// All later work of `after` behind all present work of `before`. False: it could not be had.
bool Worker::order(std::size_t before, std::size_t after) {
  if (before == after) return true;
  CUevent event = nullptr;
  bool ordered = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  if (ordered) {
    ordered = ok(cuEventRecord(event, streams_[before].handle), "cuEventRecord") &&
              ok(cuStreamWaitEvent(streams_[after].handle, event, 0), "cuStreamWaitEvent");
    ok(cuEventDestroy(event), "cuEventDestroy");
  }
  return ordered || ok(cuStreamSynchronize(streams_[before].handle), "cuStreamSynchronize");
}

void Worker::launch(CUfunction kernel, std::size_t stream, void** parameters) {
  ++launches_;
  const bool one = kernel == card_.spin;
  if (!ok(cuLaunchKernel(kernel, one ? 1 : kGrid, 1, 1, one ? 1 : kThreadsOfABlock, 1, 1, 0, streams_[stream].handle,
                         parameters, nullptr),
          "cuLaunchKernel"))
    lost_ = true;
}

void Worker::fill(const Block& block, std::size_t stream) {
  CUdeviceptr to = block.address;
  std::uint64_t bytes = block.bytes;
  std::uint32_t seed = block.seed;
  void* parameters[] = {&to, &bytes, &seed};
  launch(card_.fill, stream, parameters);
}

void Worker::verify(const Block& block, std::size_t stream) {
  CUdeviceptr at = block.address;
  std::uint64_t bytes = block.bytes;
  std::uint32_t seed = block.seed;
  CUdeviceptr wrong = streams_[stream].wrong;
  void* parameters[] = {&at, &bytes, &seed, &wrong};
  launch(card_.check, stream, parameters);
}

}  // namespace torture
