// See torture.h: the cards, the threads, and the verdict.
//   torture [--image FILE] [--seed N] [--operations N] [--seconds S] [--threads N] [--streams N] [--devices N]
//           [--largest BYTES] [--live BYTES] [--tolerate] [--forks] [--forked-exits] [--leave] [--backlog N]
// Last line: torture: operations N, refused N, wrong bytes N, errors N. Exit status 0 if the last two are 0.
#include "tests/soak/torture.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

namespace torture {

CUresult Counters::open() {
  void* memory = nullptr;
  if (const CUresult result = cuMemHostAlloc(&memory, 4 * kSlots, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE))
    return result;
  std::memset(memory, 0, 4 * kSlots);
  host_ = static_cast<std::uint32_t*>(memory);
  return cuMemHostGetDevicePointer(&at_, memory, 0);
}

std::uint64_t Counters::wrong() const { return std::accumulate(host_, host_ + kSlots, std::uint64_t{0}); }

namespace {

CUresult open_card(Card& card, CUdevice device, const std::string& image) {
  card.device = device;
  CUmodule module = nullptr;
  if (const CUresult result = cuDevicePrimaryCtxRetain(&card.context, device)) return result;
  if (const CUresult result = cuCtxSetCurrent(card.context)) return result;
  if (const CUresult result = cuModuleLoad(&module, image.c_str())) return result;
  if (const CUresult result = cuModuleGetFunction(&card.fill, module, "fill")) return result;
  if (const CUresult result = cuModuleGetFunction(&card.check, module, "check")) return result;
  return cuModuleGetFunction(&card.spin, module, "spin");
}

// A kernel may be loaded at its first launch, which is not to be beside an open capture.
CUresult launch_each(const Card& card, CUdeviceptr wrong) {
  if (const CUresult result = cuCtxSetCurrent(card.context)) return result;
  std::uint64_t none = 0;
  std::uint32_t seed = 0;
  void* parameters[] = {&wrong, &none, &seed, &wrong};
  void* ticks[] = {&none};
  for (CUfunction kernel : {card.fill, card.check, card.spin}) {
    void** given = kernel == card.spin ? ticks : parameters;
    if (const CUresult result = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, given, nullptr)) return result;
  }
  return cuCtxSynchronize();
}

// Blocks that nobody received: checked by whoever is last.
void drain(Card& card, Counters& counters, Counts& counts, const Options& options) {
  if (cuCtxSetCurrent(card.context) != CUDA_SUCCESS) return;
  for (Parcel& parcel : card.parcels) {
    if (cuEventSynchronize(parcel.event) != CUDA_SUCCESS && !options.tolerate) ++counts.errors;
    CUdeviceptr wrong = counters.slot();
    void* parameters[] = {&parcel.block.address, &parcel.block.bytes, &parcel.block.seed, &wrong};
    if (cuLaunchKernel(card.check, kGrid, 1, 1, kThreadsOfABlock, 1, 1, 0, CU_STREAM_LEGACY, parameters, nullptr) !=
            CUDA_SUCCESS &&
        !options.tolerate)
      ++counts.errors;
    if (!parcel.block.plain) cuStreamSynchronize(CU_STREAM_LEGACY);
    cuMemFree(parcel.block.address);
  }
  card.parcels.clear();
  if (cuCtxSynchronize() != CUDA_SUCCESS && !options.tolerate) ++counts.errors;
}

int run(const Options& options) {
  Counters counters;
  Counts counts;
  std::vector<std::unique_ptr<Card>> cards;
  CUresult begun = cuInit(0);
  for (unsigned device = 0; device < options.devices && begun == CUDA_SUCCESS; ++device) {
    cards.push_back(std::make_unique<Card>());
    begun = open_card(*cards.back(), static_cast<CUdevice>(device), options.image);
  }
  if (begun == CUDA_SUCCESS) begun = counters.open();
  for (const auto& card : cards) {
    if (begun == CUDA_SUCCESS) begun = launch_each(*card, counters.slot());
  }
  if (begun != CUDA_SUCCESS) {
    std::printf("torture: cannot begin: error %d\n", static_cast<int>(begun));
    return options.tolerate ? 0 : 1;
  }
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < options.threads; ++number) {
    threads.emplace_back(
        [&, number] { Worker(options, number, *cards[number % options.devices], counters, counts).run(); });
  }
  if (options.leave) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 2));
  } else {
    for (std::thread& thread : threads) thread.join();
    for (const auto& card : cards) drain(*card, counters, counts, options);
  }
  const std::uint64_t wrong = counters.wrong();
  std::printf("torture: operations %llu, refused %llu, wrong bytes %llu, errors %llu\n",
              static_cast<unsigned long long>(counts.operations), static_cast<unsigned long long>(counts.refused),
              static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(counts.errors));
  const int status = wrong == 0 && counts.errors == 0 ? 0 : 1;
  if (options.leave) {
    begin_exit();
    std::exit(status);
  }
  return status;
}

bool* flag_of(const std::string& word, Options& options) {
  if (word == "--tolerate") return &options.tolerate;
  if (word == "--forks") return &options.forks;
  if (word == "--forked-exits") return &options.forked_exits;
  if (word == "--leave") return &options.leave;
  return nullptr;
}

bool read(int count, char** words, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (bool* flag = flag_of(word, options)) {
      *flag = true;
      continue;
    }
    if (++i == count) return false;
    const auto number = std::strtoull(words[i], nullptr, 10);
    if (word == "--image")
      options.image = words[i];
    else if (word == "--seed")
      options.seed = number;
    else if (word == "--operations")
      options.operations = number;
    else if (word == "--seconds")
      options.seconds = std::strtod(words[i], nullptr);
    else if (word == "--threads")
      options.threads = static_cast<unsigned>(number);
    else if (word == "--streams")
      options.streams = static_cast<unsigned>(number);
    else if (word == "--devices")
      options.devices = static_cast<unsigned>(number);
    else if (word == "--largest")
      options.largest = number;
    else if (word == "--backlog")
      options.backlog = number;
    else if (word == "--live")
      options.live = number;
    else
      return false;
  }
  return options.threads > 0 && options.streams > 0 && options.devices > 0;
}

}  // namespace
}  // namespace torture

int main(int count, char** words) {
  torture::Options options;
  if (!torture::read(count, words, options)) {
    std::fprintf(stderr, "torture: see the head of torture.cpp\n");
    return 2;
  }
  if (options.seconds < 1e6) alarm(static_cast<unsigned>(options.seconds) + torture::kLastSeconds);
  return torture::run(options);
}
