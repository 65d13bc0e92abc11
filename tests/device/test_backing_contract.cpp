// What every backing must do, whatever it is made of: the contract of pool/backing.h, for mapped handles, for slabs,
// and for the books of the memory backing in both placements.
#include "device/context.h"
#include "tests/device/backing_rigs.h"

namespace gpupool::test {

#define BACKING_CONTRACT(name) TEMPLATE_TEST_CASE(name, "[backing]", VmmRig, ArenaRig, ChosenBooksRig, GivenBooksRig)
#define CHOSEN_CONTRACT(name) TEMPLATE_TEST_CASE(name, "[backing]", VmmRig, ChosenBooksRig)

namespace {

/// A handle made usable, wherever the backing lets it lie.
struct Piece {
  Handle handle;
  std::uint64_t address = 0;
};

Piece make_piece(Backing& backing, std::uint64_t bytes, std::uint64_t place) {
  Piece piece;
  REQUIRE(backing.create(bytes, Location::kDevice, piece.handle).ok());
  piece.address = backing.placement() == Placement::kGiven ? piece.handle.address : place;
  REQUIRE(backing.map(piece.handle, piece.address).ok());
  return piece;
}

void drop_piece(Backing& backing, const Piece& piece) {
  REQUIRE(backing.unmap(piece.handle, piece.address).ok());
  backing.destroy(piece.handle);
}

}  // namespace

BACKING_CONTRACT("the unit is a power of two and holds a block") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  CHECK(unit >= 512);
  CHECK((unit & (unit - 1)) == 0);
}

BACKING_CONTRACT("a piece can be used between map and unmap, and its memory comes back") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  const std::uint64_t bytes = 16 * unit;
  std::uint64_t range = 0;
  REQUIRE(rig.backing.reserve(2 * bytes, range).ok());
  CHECK((range == 0) == (rig.backing.placement() == Placement::kGiven));
  const CardMemory before = rig.backing.card_memory();
  CHECK(before.free <= before.total);
  const Piece piece = make_piece(rig.backing, bytes, range);
  CHECK(piece.handle.bytes == bytes);
  CHECK(piece.handle.location == Location::kDevice);
  CHECK(piece.address % 512 == 0);
  rig.mark(piece.address, bytes, 7);
  CHECK(rig.marked(piece.address, bytes, 7));
  const CardMemory during = rig.backing.card_memory();
  CHECK(during.total == before.total);
  CHECK(during.free + bytes <= before.free);
  drop_piece(rig.backing, piece);
  CHECK(rig.backing.card_memory().free >= during.free + bytes);
  rig.backing.unreserve(range, 2 * bytes);
}

BACKING_CONTRACT("pieces live side by side, of different sizes, and end in any order") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  std::uint64_t range = 0;
  REQUIRE(rig.backing.reserve(64 * unit, range).ok());
  std::vector<Piece> pieces;
  std::uint64_t place = range;
  for (const std::uint64_t units : {1, 3, 8, 2}) {
    pieces.push_back(make_piece(rig.backing, units * unit, place));
    place += units * unit;
  }
  for (std::uint32_t i = 0; i < pieces.size(); ++i) rig.mark(pieces[i].address, pieces[i].handle.bytes, i + 1);
  for (std::uint32_t i = 0; i < pieces.size(); ++i) CHECK(rig.marked(pieces[i].address, pieces[i].handle.bytes, i + 1));
  for (const std::uint32_t i : {2, 0}) drop_piece(rig.backing, pieces[i]);
  for (const std::uint32_t i : {1, 3}) CHECK(rig.marked(pieces[i].address, pieces[i].handle.bytes, i + 1));
  for (const std::uint32_t i : {3, 1}) drop_piece(rig.backing, pieces[i]);
  rig.backing.unreserve(range, 64 * unit);
}

BACKING_CONTRACT("what the card does not have is refused as out of memory, and nothing is taken") {
  TestType rig;
  const CardMemory before = rig.backing.card_memory();
  const std::uint64_t unit = rig.backing.granularity();
  Handle handle;
  const DriverAnswer answer = rig.backing.create((before.total / unit + 16) * unit, Location::kDevice, handle);
  CHECK(answer.code == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(handle.bytes == 0);
  CHECK(rig.backing.card_memory().free == before.free);
}

BACKING_CONTRACT("a thread without a context can do it all, and still has none") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  {
    const NoContext none;
    std::uint64_t range = 0;
    REQUIRE(rig.backing.reserve(4 * unit, range).ok());
    CHECK(rig.backing.card_memory().total > 0);
    drop_piece(rig.backing, make_piece(rig.backing, 4 * unit, range));
    rig.backing.unreserve(range, 4 * unit);
    CHECK(current_context(driver().api) == nullptr);
  }
  CHECK(current_context(driver().api) == driver().context);
}

CHOSEN_CONTRACT("neighbouring handles are one piece of memory, and a handle keeps its bytes when it moves") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  std::uint64_t range = 0;
  REQUIRE(rig.backing.reserve(8 * unit, range).ok());
  const Piece low = make_piece(rig.backing, unit, range);
  Piece high = make_piece(rig.backing, unit, range + unit);
  rig.mark(range, 2 * unit, 5);
  CHECK(rig.marked(range, 2 * unit, 5));
  rig.mark(high.address, unit, 6);
  REQUIRE(rig.backing.unmap(high.handle, high.address).ok());
  high.address = range + 4 * unit;
  REQUIRE(rig.backing.map(high.handle, high.address).ok());
  CHECK(rig.marked(high.address, unit, 6));
  const Piece filler = make_piece(rig.backing, unit, range + unit);
  rig.mark(range, 2 * unit, 8);
  CHECK(rig.marked(range, 2 * unit, 8));
  for (const Piece& piece : {low, high, filler}) drop_piece(rig.backing, piece);
  rig.backing.unreserve(range, 8 * unit);
}

CHOSEN_CONTRACT("host memory maps beside the device's, or is refused as not supported") {
  TestType rig;
  const std::uint64_t unit = rig.backing.granularity();
  std::uint64_t range = 0;
  REQUIRE(rig.backing.reserve(2 * unit, range).ok());
  const Piece device = make_piece(rig.backing, unit, range);
  const CardMemory before = rig.backing.card_memory();
  Handle host;
  const DriverAnswer answer = rig.backing.create(unit, Location::kHost, host);
  if (answer.ok()) {
    CHECK(host.location == Location::kHost);
    CHECK(rig.backing.card_memory().free == before.free);
    REQUIRE(rig.backing.map(host, range + unit).ok());
    rig.mark(range, 2 * unit, 9);
    CHECK(rig.marked(range, 2 * unit, 9));
    drop_piece(rig.backing, {host, range + unit});
  } else {
    CHECK(answer.code == CUDA_ERROR_NOT_SUPPORTED);
  }
  drop_piece(rig.backing, device);
  rig.backing.unreserve(range, 2 * unit);
}

TEMPLATE_TEST_CASE("where places are given, host memory is refused", "[backing]", ArenaRig, GivenBooksRig) {
  TestType rig;
  Handle handle;
  CHECK(rig.backing.create(rig.backing.granularity(), Location::kHost, handle).code == CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace gpupool::test
