// Traces as PyTorch's snapshots: loaded by Python's pickle, held against the keys that PyTorch writes, and undone event
// by event as its viewer does it; read back by our own reader.
#include <cstdlib>

#include "cli/console.h"
#include "cli/trace/read.h"
#include "cli/trace/torch_snapshot.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::cli;
using gpupool::tests::Folder;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Blocks of two streams that come and go over 64 MiB, some larger than a segment's piece, some left at the end.
Trace sample(std::uint32_t device) {
  TraceBuilder builder;
  const std::uint64_t base = std::uint64_t{0x7f00} << 32;
  std::uint64_t time = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::uint64_t place = (i * 7919) % 64;
    const std::uint64_t address = base + place * kMiB;
    const Seen seen{.time_ns = time += 1500, .address = address};
    if (builder.is_live(address))
      builder.free(address, i % 2, seen);
    else
      builder.allocate(address, 1 + (i * 104729) % kMiB, i % 2, seen);
  }
  builder.mark({.time_ns = time, .bytes = 99 * kMiB, .reserved = 5 * kMiB, .kind = MarkKind::out_of_memory});
  builder.trace().timed = builder.trace().placed = true;
  builder.trace().origin.device = device;
  builder.trace().origin.limit = 64 * kMiB;
  builder.trace().origin.began_unix_ns = 1'700'000'000'000'000'000;
  return builder.finish("sample", "gpupool");
}

const char kCheck[] = R"(
import pickle, pickletools, sys
data = open(sys.argv[1], "rb").read()
# What torch/utils/viz/MemoryViz.js can read.
known = set("PROTO APPENDS BINGET BININT BININT1 BININT2 EMPTY_DICT EMPTY_LIST FRAME LONG1 LONG_BINGET MARK MEMOIZE SETITEMS "
            "SHORT_BINUNICODE STOP TUPLE2 APPEND NEWFALSE BINPUT BINUNICODE EMPTY_TUPLE NEWTRUE NONE BINFLOAT TUPLE TUPLE1 "
            "TUPLE3 LONG_BINPUT LIST DICT SETITEM".split())
assert {op.name for op, _, _ in pickletools.genops(data)} <= known
snapshot = pickle.loads(data)
assert {"segments", "device_traces"} <= snapshot.keys()
assert [bool(t) for t in snapshot["device_traces"]] == [True, False, True]
for device, events in enumerate(snapshot["device_traces"]):
    segments = [s for s in snapshot["segments"] if s["device"] == device]
    blocks = {}
    for s in segments:
        assert s.keys() == {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
                            "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"}
        assert s["segment_pool_id"] == (0, 0)
        at = s["address"]
        for b in s["blocks"]:
            assert b.keys() == {"address", "size", "requested_size", "state", "frames"}
            assert b["address"] == at
            at += b["size"]
            if b["state"] == "active_allocated":
                blocks[b["address"]] = b["requested_size"]
        assert at == s["address"] + s["total_size"]
        assert s["requested_size"] == sum(b["requested_size"] for b in s["blocks"])
    # Backwards, as the viewer goes: whatever is undone has to be there, and every block has to lie in a segment.
    ranges = [[s["address"], s["address"] + s["total_size"]] for s in segments]
    last = None
    seen = set()
    for e in reversed(events):
        assert {"action", "addr", "size", "stream", "time_us", "frames"} <= e.keys()
        assert last is None or e["time_us"] <= last
        last = e["time_us"]
        action, begin, end = e["action"], e["addr"], e["addr"] + e["size"]
        seen.add(action)
        if action == "alloc":
            assert blocks.pop(begin) == e["size"]
        elif action == "free_completed":
            assert begin not in blocks
            blocks[begin] = e["size"]
            assert any(r[0] <= begin and end <= r[1] for r in ranges)
        elif action == "free_requested":
            assert blocks[begin] == e["size"]
        elif action == "segment_alloc":
            ranges.remove([begin, end])
        elif action == "segment_map":
            r = next(r for r in ranges if r[0] <= begin and end <= r[1])
            ranges.remove(r)
            ranges += [part for part in ([r[0], begin], [end, r[1]]) if part[0] < part[1]]
        else:
            assert action == "oom" and e["device_free"] == 59 << 20
    assert not blocks and not ranges
    assert not events or seen == {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_map", "oom"}
)";

}  // namespace

TEST_CASE("Python loads it, the keys are PyTorch's, and its viewer can undo every event") {
  const Folder folder;
  const std::string snapshot = folder.file("s.pickle", torch_snapshot({sample(0), sample(2)}));
  const std::string script = folder.file("check.py", kCheck);
  CHECK(std::system(("python3 " + script + " " + snapshot).c_str()) == 0);
}

TEST_CASE("our own reader makes the same trace of it") {
  const Folder folder;
  const Trace before = sample(0);
  const Trace after = read_trace(folder.file("s.pickle", torch_snapshot({before})));
  REQUIRE(after.events.size() == before.events.size());
  CHECK(after.requests == before.requests);
  for (std::size_t i = 0; i < after.events.size(); ++i) {
    REQUIRE(after.events[i].bytes == before.events[i].bytes);
    REQUIRE(after.events[i].slot == before.events[i].slot);
    REQUIRE(after.events[i].seen.address == before.events[i].seen.address);
    if (after.events[i].bytes != 0) REQUIRE(after.events[i].stream == before.events[i].stream);
  }
}

TEST_CASE("report --torch-snapshot: one trace with addresses, into a new file") {
  const Folder folder;
  const std::string bare = folder.file("t.csv", "a,1,512,0\n");
  const std::string placed =
      folder.file("t.rmm", "Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.5,allocate,0x7f00,1024,0x0\n");
  const std::string file = folder / "s.pickle";
  const auto refused = gpupool::tests::command({"report", "--torch-snapshot", file, bare});
  CHECK(refused.status == 3);
  CHECK(gpupool::tests::contains(refused.err, "the trace has no addresses"));
  CHECK(gpupool::tests::command({"report", "--torch-snapshot", file, placed, placed}).status == 2);
  CHECK(gpupool::tests::command({"report", "--torch-snapshot", file, placed}).status == 0);
  CHECK(read_trace(file).requests == 1);
  CHECK(gpupool::tests::command({"report", "--torch-snapshot", file, placed}).status == 5);
}
