// Memory of one process in another by cuIpcGetMemHandle: exactly the block, whatever it is a part of; wrong handles.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/cases/programs/partner.h"
#include "tests/preload/core/program.h"

namespace {

using partner::Partner;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr unsigned kFlags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

struct Sent {
  CUipcMemHandle handle;
  std::uint64_t bytes;
  std::uint8_t content;
};

struct Shared {
  CUdeviceptr address;
  Sent sent;
};

Shared share(std::size_t bytes, std::uint8_t content) {
  Shared shared{};
  OK(cuMemAlloc(&shared.address, bytes));
  OK(cuMemsetD8(shared.address, content, bytes));
  shared.sent.bytes = bytes;
  shared.sent.content = content;
  OK(cuIpcGetMemHandle(&shared.sent.handle, shared.address));
  return shared;
}

std::uint64_t bytes_that_are_not(std::uint8_t content, CUdeviceptr address, std::size_t bytes) {
  std::vector<std::uint8_t> seen(bytes);
  OK(cuMemcpyDtoH(seen.data(), address, bytes));
  std::uint64_t wrong = 0;
  for (std::uint8_t byte : seen) wrong += byte != content;
  return wrong;
}

CUdeviceptr open(const CUipcMemHandle& handle) {
  CUdeviceptr address = 0;
  OK(cuIpcOpenMemHandle(&address, handle, kFlags));
  return address;
}

const std::size_t kSizes[] = {1000, 4 * kMiB, 512, 100 * kMiB + 512, 3 * kMiB, 7};

CUdevice importers_device() {
  const char* device = std::getenv("TEST_IMPORTERS_DEVICE");
  return device ? std::atoi(device) : 0;
}

// What the driver serves it hands out again after the free, whoever has it open.
bool frees_keep_memory() { return std::getenv("TEST_POOLED") != nullptr; }

}  // namespace

CASE(share_blocks) {
  program::begin();
  Partner importer("share_blocks_opened");
  std::vector<Shared> all;
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    all.push_back(share(kSizes[i], static_cast<std::uint8_t>(i + 1)));
    CUdeviceptr between = 0;
    OK(cuMemAlloc(&between, 3 * kMiB));
  }
  OK(cuCtxSynchronize());
  for (Shared& shared : all) {
    CUipcMemHandle again;
    std::memset(&again, 0, sizeof again);
    // The same each time, also by an address inside.
    OK(cuIpcGetMemHandle(&again, shared.address + shared.sent.bytes / 2));
    HOLDS(std::memcmp(&again, &shared.sent.handle, sizeof again) == 0);
    partner::send(importer.line(), shared.sent);
  }
  for (Shared& shared : all) {
    const auto written = partner::receive<std::uint8_t>(importer.line());
    EQUAL(bytes_that_are_not(written, shared.address, shared.sent.bytes), 0u);
  }
  // The importer still has them open: whatever is allocated after the frees is other memory.
  for (Shared& shared : all) OK(cuMemFree(shared.address));
  for (int i = 0; i < 10; ++i) {
    CUdeviceptr next = 0;
    OK(cuMemAlloc(&next, 4 * kMiB));
    OK(cuMemsetD8(next, 0xee, 4 * kMiB));
  }
  OK(cuCtxSynchronize());
  partner::send(importer.line(), std::uint8_t{1});
  partner::receive<std::uint8_t>(importer.line());
}

CASE(share_blocks_opened) {
  const int exporter = partner::other_side();
  const CUcontext context = program::begin(importers_device());
  struct Opened {
    CUdeviceptr address;
    Sent sent;
  };
  std::vector<Opened> all;
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const auto sent = partner::receive<Sent>(exporter);
    const CUdeviceptr address = open(sent.handle);
    EQUAL(bytes_that_are_not(sent.content, address, sent.bytes), 0u);
    EQUAL(open(sent.handle), address);  // once more is the same, counted
    OK(cuIpcCloseMemHandle(address));
    EQUAL(bytes_that_are_not(sent.content, address, sent.bytes), 0u);
    CUcontext told = nullptr;
    OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_CONTEXT, address));
    HOLDS(told == context);
    EQUAL(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    CUipcMemHandle handed_on;
    EQUAL(cuIpcGetMemHandle(&handed_on, address), CUDA_ERROR_INVALID_VALUE);
    all.push_back({address, sent});
  }
  for (const Opened& opened : all) {
    const auto content = static_cast<std::uint8_t>(100 + opened.sent.content);
    OK(cuMemsetD8(opened.address, content, opened.sent.bytes));
    OK(cuCtxSynchronize());
    partner::send(exporter, content);
  }
  partner::receive<std::uint8_t>(exporter);
  for (const Opened& opened : all) {
    const auto content = static_cast<std::uint8_t>(100 + opened.sent.content);
    if (frees_keep_memory()) EQUAL(bytes_that_are_not(content, opened.address, opened.sent.bytes), 0u);
    OK(cuIpcCloseMemHandle(opened.address));
    EQUAL(cuIpcCloseMemHandle(opened.address), CUDA_ERROR_INVALID_VALUE);
  }
  partner::send(exporter, std::uint8_t{1});
}

// What an importer is told of an opened block, as of any other memory.
CASE(share_range) {
  program::begin();
  Partner importer("share_range_opened");
  const Shared shared = share(5 * kMiB + 100, 3);
  OK(cuCtxSynchronize());
  partner::send(importer.line(), shared.sent);
  partner::receive<std::uint8_t>(importer.line());
}

CASE(share_range_opened) {
  program::begin();
  const auto sent = partner::receive<Sent>(partner::other_side());
  const CUdeviceptr address = open(sent.handle);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  OK(cuMemGetAddressRange(&base, &bytes, address + 4 * kMiB));
  EQUAL(base, address);
  EQUAL(bytes, sent.bytes);
  OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
  EQUAL(bytes, sent.bytes);
  CUmemGenericAllocationHandle handle = 0;
  EQUAL(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)), CUDA_ERROR_INVALID_VALUE);
  OK(cuIpcCloseMemHandle(address));
  partner::send(partner::other_side(), std::uint8_t{1});
}

// An importer on the plain driver gets exactly the block, or the driver's error: never other bytes.
CASE(share_with_plain) {
  program::begin();
  Partner importer("share_with_plain_opened", partner::Preload::kNone);
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const Shared shared = share(kSizes[i], static_cast<std::uint8_t>(i + 1));
    OK(cuCtxSynchronize());
    partner::send(importer.line(), shared.sent);
  }
  const auto opened = partner::receive<std::uint8_t>(importer.line());
  const char* backing = std::getenv("GPUPOOL_POOL_BACKING");
  if (backing && std::string(backing) == "arena") HOLDS(opened > 0);
}

CASE(share_with_plain_opened) {
  program::begin();
  std::uint8_t count = 0;
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const auto sent = partner::receive<Sent>(partner::other_side());
    CUdeviceptr address = 0;
    const CUresult result = cuIpcOpenMemHandle(&address, sent.handle, kFlags);
    if (result != CUDA_SUCCESS) {
      EQUAL(result, CUDA_ERROR_INVALID_VALUE);
      continue;
    }
    ++count;
    EQUAL(bytes_that_are_not(sent.content, address, sent.bytes), 0u);
    OK(cuIpcCloseMemHandle(address));
  }
  partner::send(partner::other_side(), count);
}

// Handles that name nothing (any more): changed, freed, of this process itself, of one that has ended.
CASE(share_wrongly) {
  program::begin();
  CUdeviceptr address = 0;
  Shared shared = share(4 * kMiB, 1);
  EQUAL(cuIpcOpenMemHandle(&address, shared.sent.handle, kFlags), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuIpcGetMemHandle(nullptr, shared.address), CUDA_ERROR_INVALID_VALUE);
  Partner importer("share_wrongly_opened");
  partner::send(importer.line(), shared.sent);
  partner::receive<std::uint8_t>(importer.line());
  OK(cuMemFree(shared.address));
  EQUAL(cuIpcGetMemHandle(&shared.sent.handle, shared.address), CUDA_ERROR_INVALID_VALUE);
  partner::send(importer.line(), std::uint8_t{1});
  partner::receive<std::uint8_t>(importer.line());
  // The other way round: the partner shares, and is killed.
  const auto sent = partner::receive<Sent>(importer.line());
  importer.kill();
  EQUAL(cuIpcOpenMemHandle(&address, sent.handle, kFlags), CUDA_ERROR_INVALID_VALUE);
}

CASE(share_wrongly_opened) {
  const int exporter = partner::other_side();
  program::begin();
  const auto sent = partner::receive<Sent>(exporter);
  CUdeviceptr address = 0;
  for (std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{25}}) {
    CUipcMemHandle forged = sent.handle;
    forged.reserved[at] = static_cast<char>(forged.reserved[at] ^ 0x55);
    HOLDS(cuIpcOpenMemHandle(&address, forged, kFlags) != CUDA_SUCCESS);
  }
  EQUAL(cuIpcOpenMemHandle(nullptr, sent.handle, kFlags), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcOpenMemHandle(&address, sent.handle, 8), CUDA_ERROR_INVALID_VALUE);
  partner::send(exporter, std::uint8_t{1});
  partner::receive<std::uint8_t>(exporter);
  HOLDS(cuIpcOpenMemHandle(&address, sent.handle, kFlags) != CUDA_SUCCESS);
  partner::send(exporter, std::uint8_t{1});
  const Shared own = share(kMiB, 2);
  partner::send(exporter, own.sent);
  partner::receive<std::uint8_t>(exporter);
}

// An exporter that has forked answers all the same.
CASE(share_many_times) {
  program::begin();
  Partner importer("share_many_times_opened");
  for (std::uint8_t round = 1; round <= 50; ++round) {
    const Shared shared = share(20000, round);
    OK(cuCtxSynchronize());
    partner::send(importer.line(), shared.sent);
    partner::receive<std::uint8_t>(importer.line());
    OK(cuMemFree(shared.address));
    if (round % 10 != 0) continue;
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    EQUAL(status, 0);
  }
}

CASE(share_many_times_opened) {
  program::begin();
  for (int round = 1; round <= 50; ++round) {
    const auto sent = partner::receive<Sent>(partner::other_side());
    const CUdeviceptr address = open(sent.handle);
    EQUAL(bytes_that_are_not(sent.content, address, sent.bytes), 0u);
    OK(cuIpcCloseMemHandle(address));
    partner::send(partner::other_side(), std::uint8_t{1});
  }
}

// Far more than the card has, in all: what was exported and freed must come back, opened or not.
CASE(share_more_than_there_is) {
  program::begin();
  std::vector<CUdeviceptr> kept;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t bytes = round % 3 ? 5 * kMiB - 512 : 700;
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, bytes));
    if (block == 0) break;
    if (round % 4 == 3) {
      int file = -1;
      const CUresult result = cuMemGetHandleForAddressRange(&file, block / (2 * kMiB) * (2 * kMiB), 2 * kMiB,
                                                            CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
      if (frees_keep_memory()) OK(result);
      if (result == CUDA_SUCCESS) close(file);
    } else {
      CUipcMemHandle handle;
      OK(cuIpcGetMemHandle(&handle, block));
    }
    if (round % 100 == 0)
      kept.push_back(block);  // in between lies what stays
    else
      OK(cuMemFree(block));
  }
  for (CUdeviceptr block : kept) OK(cuMemFree(block));
}

constexpr int kRounds = 40;

// An importer that keeps the last few open sees what was in them when it opened them, whatever the exporter does with
// what it has freed; every other time an importer ends with all of its own open.
CASE(share_in_turn) {
  program::begin();
  for (int importers = 0; importers < 4; ++importers) {
    Partner importer(importers % 2 ? "share_in_turn_killed" : "share_in_turn_opened");
    for (int round = 0; round < kRounds; ++round) {
      const Shared shared = share(round % 3 ? 5 * kMiB : 700, static_cast<std::uint8_t>(round));
      OK(cuCtxSynchronize());
      partner::send(importer.line(), shared.sent);
      partner::receive<std::uint8_t>(importer.line());
      OK(cuMemFree(shared.address));
      CUdeviceptr other = 0;
      OK(cuMemAlloc(&other, shared.sent.bytes));
      OK(cuMemsetD8(other, 0xee, shared.sent.bytes));
      OK(cuMemFree(other));
    }
    if (importers % 2) importer.kill();
  }
}

namespace {

void keep_the_last(std::size_t most, bool closes) {
  program::begin();
  std::vector<Shared> open_now;
  for (int round = 0; round < kRounds; ++round) {
    const auto sent = partner::receive<Sent>(partner::other_side());
    open_now.push_back({open(sent.handle), sent});
    if (closes && open_now.size() > most) {
      const Shared oldest = open_now.front();
      EQUAL(bytes_that_are_not(oldest.sent.content, oldest.address, oldest.sent.bytes), 0u);
      OK(cuIpcCloseMemHandle(oldest.address));
      open_now.erase(open_now.begin());
    }
    partner::send(partner::other_side(), std::uint8_t{1});
  }
  for (const Shared& shared : open_now)
    EQUAL(bytes_that_are_not(shared.sent.content, shared.address, shared.sent.bytes), 0u);
}

}  // namespace

CASE(share_in_turn_opened) { keep_the_last(8, true); }

CASE(share_in_turn_killed) {
  keep_the_last(kRounds, false);
  partner::receive<std::uint8_t>(partner::other_side());  // for its end
}

// Many threads of an importer open and close blocks of one exporter at once, while it frees them; the importer forks
// now and then, and its children end without a word.
CASE(share_with_threads) {
  program::begin();
  Partner importer("share_with_threads_opened");
  for (int round = 0; round < 4; ++round) {
    std::vector<Shared> all;
    for (int i = 0; i < 32; ++i) all.push_back(share(i % 2 ? 3 * kMiB : 5000, static_cast<std::uint8_t>(i + 1)));
    OK(cuCtxSynchronize());
    for (const Shared& shared : all) partner::send(importer.line(), shared.sent);
    partner::receive<std::uint8_t>(importer.line());
    for (const Shared& shared : all) OK(cuMemFree(shared.address));
    partner::send(importer.line(), std::uint8_t{1});
  }
}

CASE(share_with_threads_opened) {
  const CUcontext context = program::begin();
  for (int round = 0; round < 4; ++round) {
    std::vector<Sent> all;
    for (int i = 0; i < 32; ++i) all.push_back(partner::receive<Sent>(partner::other_side()));
    std::vector<CUdeviceptr> opened(all.size());
    const auto with_threads = [&](auto act) {
      std::vector<std::thread> threads;
      for (std::size_t first = 0; first < 4; ++first) {
        threads.emplace_back([&, first] {
          OK(cuCtxSetCurrent(context));
          for (std::size_t i = first; i < all.size(); i += 4) act(i);
        });
      }
      for (std::thread& thread : threads) thread.join();
    };
    with_threads([&](std::size_t i) {
      for (int again = 0; again < 3; ++again) {  // all but the last open and close
        opened[i] = open(all[i].handle);
        if (again < 2) OK(cuIpcCloseMemHandle(opened[i]));
      }
      EQUAL(open(all[i].handle), opened[i]);
      OK(cuIpcCloseMemHandle(opened[i]));
    });
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    partner::send(partner::other_side(), std::uint8_t{1});
    partner::receive<std::uint8_t>(partner::other_side());
    with_threads([&](std::size_t i) {
      EQUAL(bytes_that_are_not(all[i].content, opened[i], all[i].bytes), 0u);
      OK(cuIpcCloseMemHandle(opened[i]));
    });
  }
}

// Resets at both ends: what an importer had open goes with its context, with or without a pool of its own, and can be
// opened again; after the exporter's reset its handles name nothing, though their addresses come back.
CASE(share_over_resets) {
  program::begin();
  Partner importer("share_over_resets_opened");
  const Shared shared = share(3 * kMiB, 5);
  OK(cuCtxSynchronize());
  partner::send(importer.line(), shared.sent);
  partner::receive<std::uint8_t>(importer.line());
  OK(cuDevicePrimaryCtxReset(0));
  program::begin();
  const Shared anew = share(3 * kMiB, 9);
  OK(cuCtxSynchronize());
  partner::send(importer.line(), anew.sent);
  partner::receive<std::uint8_t>(importer.line());
  OK(cuMemFree(anew.address));
}

CASE(share_over_resets_opened) {
  const CUcontext primary = program::begin();
  const auto sent = partner::receive<Sent>(partner::other_side());
  const CUdeviceptr address = open(sent.handle);
  const CUcontext other = program::new_context();
  open(sent.handle);
  OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(primary));
  EQUAL(bytes_that_are_not(sent.content, address, sent.bytes), 0u);
  OK(cuDevicePrimaryCtxReset(0));
  program::begin();
  EQUAL(cuIpcCloseMemHandle(address), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr again = open(sent.handle);
  EQUAL(bytes_that_are_not(sent.content, again, sent.bytes), 0u);
  OK(cuIpcCloseMemHandle(again));
  partner::send(partner::other_side(), std::uint8_t{1});
  const auto anew = partner::receive<Sent>(partner::other_side());
  CUdeviceptr stale = 0;
  if (frees_keep_memory()) HOLDS(cuIpcOpenMemHandle(&stale, sent.handle, kFlags) != CUDA_SUCCESS);
  const CUdeviceptr last = open(anew.handle);
  EQUAL(bytes_that_are_not(anew.content, last, anew.bytes), 0u);
  OK(cuIpcCloseMemHandle(last));
  partner::send(partner::other_side(), std::uint8_t{1});
}
