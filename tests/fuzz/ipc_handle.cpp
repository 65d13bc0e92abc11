// What another process says of a block: the 64 bytes of a handle, and an exporter's answer. An answer that makes sense
// keeps within itself whatever is made of it.
#include <cstdlib>
#include <cstring>

#include "preload/ipc_handle.h"
#include "tests/fuzz/fuzz.h"

namespace {

template <class Plain>
Plain first_bytes(const std::uint8_t* data, std::size_t size) {
  Plain plain{};
  std::memcpy(static_cast<void*>(&plain), data, size < sizeof plain ? size : sizeof plain);
  return plain;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpupool;
  CUipcMemHandle handle = first_bytes<CUipcMemHandle>(data, size);
  if (const auto shared = unpack(handle)) {
    require(unpack(pack(*shared)) == shared);
    const ExporterAddress name = address_of(shared->exporter);
    require(name.length <= sizeof name.address && name.address.sun_path[0] == 0);
  }
  if (const auto requested = SizedHandle::size_of(handle)) {
    SizedHandle::put(handle, *requested);
    require(SizedHandle::size_of(handle) == requested);
  }
  if (const auto answer = first_bytes<ShareAnswer>(data, size); makes_sense(answer)) {
    require(answer.kind == ShareKind::kRefused || answer.offset + answer.requested >= answer.offset);
    if (answer.kind == ShareKind::kPieces) require(answer.offset + answer.requested <= answer.span);
    require(answer.pieces <= ShareAnswer::kMostPieces);
  }
  return 0;
}
