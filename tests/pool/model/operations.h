// Operations on a tape as plain data: what a random program does, what is shrunk, and what prints as a regression.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape_types.h"

namespace gpupool::model {

//   VERB(name, weight)    how often a random program does it
#define GPUPOOL_MODEL_VERBS(VERB)                                                \
  VERB(allocate, 60)        /* on stream `who`, `size` bytes, touched at once */ \
  VERB(allocate_plain, 30)  /* touched by every stream at once */                \
  VERB(allocate_no_wait, 8) /* no wait may be inserted into the stream */        \
  VERB(free, 60)            /* on stream `who`, block number `size` */           \
  VERB(free_plain, 30)                                                           \
  VERB(submit, 30)                                                               \
  VERB(complete, 10)     /* all that stream `who` has */                         \
  VERB(complete_all, 2)  /* the GPU is idle */                                   \
  VERB(begin_capture, 2) /* on stream `who` */                                   \
  VERB(end_captures, 4)                                                          \
  VERB(end_stream, 1) /* destroyed with work queued, its handle used again */    \
  VERB(new_stream, 1)                                                            \
  VERB(trim, 1) /* to `size` bytes */                                            \
  VERB(prefill, 1)                                                               \
  VERB(share, 2)         /* block number `size`, in way `who` */                 \
  VERB(release, 2)       /* nobody else reaches number `size` of those kept */   \
  VERB(neighbour, 2)     /* another process takes or gives back memory */        \
  VERB(refuse_memory, 2) /* the next call number `size` of kind `who` fails */   \
  VERB(refuse_fence, 2)

enum class Verb : std::uint8_t {
#define GPUPOOL_VERB(name, weight) name,
  GPUPOOL_MODEL_VERBS(GPUPOOL_VERB)
#undef GPUPOOL_VERB
};

struct Operation {
  Verb verb;
  std::uint32_t who = 0;
  std::uint64_t size = 0;
};
using Operations = std::vector<Operation>;

/// The ground a list is played on.
struct Scene {
  const char* name = "";
  TapeOptions options = {};
  MemoryBacking::Options card = {};
  MemoryFence::Options fence = {};
  unsigned streams = 4;
  bool refusals = false;   // the driver may be told to refuse calls
  bool own_frees = false;  // a request says which plain free its thread has made, and so may wait for
};

/// The scenes that random lists are played on, by number.
const std::vector<Scene>& scenes();

/// A line of C++ for model_test.cpp.
std::string as_code(const Scene& scene, const Operations& operations);

}  // namespace gpupool::model
