// The readers: what they make of good files, and where they say a bad one is bad. The last cases feed them noise with
// fixed seeds.
#include <zlib.h>

#include <functional>
#include <random>

#include "cli/console.h"
#include "cli/trace/read.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::cli;
using gpupool::tests::contains;
using gpupool::tests::Folder;

namespace {

Trace trace_of(const std::string& text) {
  const Folder folder;
  return read_trace(folder.file("trace", text));
}

std::string fault_of(const std::string& text) {
  try {
    trace_of(text);
  } catch (const Problem& problem) {
    CHECK(problem.status() == Exit::input);
    return problem.what();
  }
  return "";
}

std::string packed(const std::string& text) {
  const Folder folder;
  const std::string path = folder / "packed";
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return gpupool::tests::read_text(path);
}

bool is(const Event& event, std::uint64_t bytes, std::uint32_t slot, std::uint32_t stream) {
  return event.bytes == bytes && event.slot == slot && event.stream == stream;
}

// A pickle by hand, protocol 2.
class Pickler {
 public:
  Pickler() : text_("\x80\x02") {}
  Pickler& raw(std::string_view bytes) { return text_ += bytes, *this; }
  Pickler& text(std::string_view value) { return raw("X").number(value.size(), 4).raw(value); }
  Pickler& integer(std::uint64_t value) { return raw("\x8a").number(8, 1).number(value, 8); }
  Pickler& list(const std::function<void()>& items) {
    raw("](");
    items();
    return raw("e");
  }
  Pickler& dict(const std::function<void()>& pairs) {
    raw("}(");
    pairs();
    return raw("u");
  }
  Pickler& entry(std::string_view action, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream = 0) {
    return dict([&] {
      text("action").text(action).text("addr").integer(address).text("size").integer(bytes).text("stream").integer(
          stream);
    });
  }
  std::string done() { return text_ + "."; }

 private:
  Pickler& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string text_;
};

std::string snapshot(const std::function<void(Pickler&)>& entries, const std::function<void(Pickler&)>& segments = {}) {
  Pickler out;
  out.dict([&] {
    out.text("segments").list([&] {
      if (segments) segments(out);
    });
    out.text("device_traces").list([&] { out.list([&] { entries(out); }); });
  });
  return out.done();
}

}  // namespace

TEST_CASE("CSV: requests, frees, streams, comments") {
  const Trace trace = trace_of("# comment\n\na,10,512,7\r\n a, 11, 100 , 8\nf,10\na,12,1\nf,11,7\na,13,0,7\nf,13\n");
  CHECK(trace.format == "csv");
  REQUIRE(trace.events.size() == 5);
  CHECK(is(trace.events[0], 512, 0, 0));
  CHECK(is(trace.events[1], 100, 1, 1));
  CHECK(is(trace.events[2], 0, 0, 0));
  CHECK(is(trace.events[3], 1, 0, kPlain));
  CHECK(is(trace.events[4], 0, 1, 0));
  CHECK(trace.requests == 3);
  CHECK(trace.slots == 2);
  CHECK(trace.streams == 2);
}

TEST_CASE("CSV: a byte-order mark in front is no part of it") {
  CHECK(trace_of("\xef\xbb\xbf"
                 "a,1,512,0\nf,1\n")
            .requests == 1);
}

TEST_CASE("CSV: faults name the line") {
  CHECK(contains(fault_of("a,1,512,0\nf,2\n"), "line 2: block 2 is freed and not live"));
  CHECK(contains(fault_of("a,1,512,0\na,1,512,0\n"), "line 2: block 1 is live already"));
  CHECK(contains(fault_of("a,1,5x2,0\n"), "line 1: \"5x2\" is no number of bytes"));
  CHECK(contains(fault_of("a,1,-512,0\n"), "\"-512\" is no number of bytes"));
  CHECK(contains(fault_of("a,1,99999999999999999,0\n"), "more than any card has"));
  CHECK(contains(fault_of("a,1,99999999999999999999999,0\n"), "is no number of bytes"));
  CHECK(contains(fault_of("a,1\n"), "is not a,BLOCK,BYTES,STREAM"));
  CHECK(contains(fault_of("hello\n"), "line 1: \"hello\" is neither"));
  CHECK(contains(fault_of("\x7f\x45LF\x02\x01"), "is no trace"));
  CHECK(contains(fault_of(std::string(100'000, 'a')), "line 1: the line is longer than 16384 bytes"));
  CHECK(contains(fault_of(""), "is empty"));
}

TEST_CASE("files that cannot be read are named") {
  CHECK_THROWS_WITH(read_trace("/nonexistent/trace"), "/nonexistent/trace: No such file or directory");
  CHECK_THROWS_WITH(read_trace("/"), "/: is a folder");
}

TEST_CASE("gzip is unpacked; a cut or damaged file is a fault") {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "a," + std::to_string(i) + "," + std::to_string(i * 7 % 4096 + 1) + ",0\n";
  const std::string whole = packed(text);
  CHECK(trace_of(whole).requests == 20'000);
  CHECK(contains(fault_of(whole.substr(0, whole.size() / 2)), "the compressed file ends too early"));
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  CHECK_FALSE(fault_of(damaged).empty());
}

TEST_CASE("RMM logs: blocks by address, frees from before the log are left out") {
  const std::string head = "Thread,Time,Action,Pointer,Size,Stream\n";
  const Trace trace = trace_of(
      head +
      "1,10:00:00,allocate,0x7f00,1024,0x0\n1,10:00:01,free,0x1234,8,0x0\n2,10:00:02,allocate failure,(nil),99,0x2\n"
      "1,10:00:03,free,0x7f00,1024,0x2\n");
  CHECK(trace.format == "rmm");
  REQUIRE(trace.events.size() == 2);
  CHECK(is(trace.events[0], 1024, 0, 0));
  CHECK(is(trace.events[1], 0, 0, 1));
  CHECK(trace.notes == std::vector<std::string>{"1 frees of blocks from before the log are left out",
                                                "1 requests that failed are left out"});
  CHECK(contains(fault_of(head + "1,t,allocate,0x1,8\n"), "line 2"));
  CHECK(contains(fault_of(head + "1,t,resize,0x1,8,0x0\n"), "\"resize\" is no action"));
  CHECK(contains(fault_of("Thread,Time\n"), "is not the head of an RMM log"));
}

TEST_CASE("RMM logs: times, threads and addresses") {
  const std::string head = "Thread,Time,Action,Pointer,Size,Stream\n";
  const Trace trace = trace_of(head +
                               "17,23:59:59.999999,allocate,0x7f00,1024,0x0\n"
                               "18,00:00:00.000001,allocate,0x8f00,1024,0x0\n17,0:0:1:5,free,0x7f00,1024,0x0\n");
  CHECK(trace.timed);
  CHECK(trace.placed);
  CHECK(trace.threads == 2);
  REQUIRE(trace.events.size() == 3);
  CHECK(trace.events[0].seen.time_ns == 0);
  CHECK(trace.events[1].seen.time_ns == 2'000);
  CHECK(trace.events[1].seen.thread == 1);
  CHECK(trace.events[2].seen.time_ns == 1'500'001'000);
  CHECK(trace.events[2].seen.address == 0x7f00);
  CHECK_FALSE(trace_of(head + "17,noon,allocate,0x7f00,1024,0x0\n").timed);
}

TEST_CASE("marks and times keep the order of the events") {
  TraceBuilder builder;
  builder.allocate(1, 512, 0, {.time_ns = 10, .address = 4096, .call = builder.call_number("cuMemAlloc_v2")});
  builder.mark({.time_ns = 5, .bytes = 7, .kind = MarkKind::growth});
  builder.free(1, 0, {.time_ns = 8, .call = builder.call_number("cuMemFree_v2")});
  CHECK(builder.call_number("cuMemAlloc_v2") == 1);
  const Trace trace = builder.finish("name", "format");
  CHECK(trace.calls == std::vector<std::string>{"", "cuMemAlloc_v2", "cuMemFree_v2"});
  REQUIRE(trace.marks.size() == 1);
  CHECK(trace.marks[0].event == 1);
  CHECK(trace.marks[0].time_ns == 10);
  CHECK(trace.events[1].seen.time_ns == 10);
  CHECK(trace.events[1].seen.address == 4096);
}

TEST_CASE("PyTorch snapshots: a block is free when its free is completed") {
  const Trace trace = trace_of(snapshot([](Pickler& out) {
    out.entry("segment_alloc", 4096, 1 << 21)
        .entry("alloc", 4096, 1000, 5)
        .entry("free_requested", 4096, 1000, 5)
        .entry("alloc", 8192, 2000, 5);
    out.entry("free_completed", 4096, 1000, 5).entry("alloc", 4096, 3000, 5).entry("free_completed", 9000, 700, 6);
  }));
  CHECK(trace.format == "pytorch");
  REQUIRE(trace.events.size() == 6);
  CHECK(is(trace.events[0], 700, 0, 0));  // freed in the record, so there before it
  CHECK(is(trace.events[1], 1000, 1, 1));
  CHECK(is(trace.events[2], 2000, 2, 1));
  CHECK(is(trace.events[3], 0, 1, 1));
  CHECK(is(trace.events[4], 3000, 1, 1));
  CHECK(is(trace.events[5], 0, 0, 0));
}

TEST_CASE("PyTorch snapshots: blocks that live through the record come from its segments") {
  const Trace trace = trace_of(snapshot(
      [](Pickler& out) { out.entry("alloc", 1512, 10); },
      [](Pickler& out) {
        out.dict([&] {
          out.text("address").integer(1000).text("stream").integer(0).text("device").integer(0);
          out.text("blocks").list([&] {
            out.dict([&] {
              out.text("size").integer(512).text("requested_size").integer(400).text("state").text("active_allocated");
            });
            out.dict([&] { out.text("size").integer(512).text("state").text("active_allocated"); });
            out.dict([&] { out.text("size").integer(1024).text("state").text("inactive"); });
          });
        });
      }));
  REQUIRE(trace.events.size() == 2);
  CHECK(is(trace.events[0], 400, 0, 0));
  CHECK(is(trace.events[1], 10, 1, 0));
}

TEST_CASE("pickles: nothing is called, and every fault has a place") {
  CHECK(contains(fault_of(Pickler().raw("cos\nsystem\n(S'true'\ntR").done()), "more than plain data (opcode 0x63)"));
  CHECK(contains(fault_of(Pickler().raw("}").done()), "is no PyTorch snapshot"));
  CHECK(contains(fault_of(Pickler().raw("").done()), "byte 3: the pickle takes more than it has put"));
  CHECK(contains(fault_of("\x80\x02X\xff\xff\xff\x7fshort"), "the file ends too early"));
  CHECK(contains(fault_of("\x80\x02h\x05."), "recalls what it has not remembered"));
  CHECK(contains(fault_of("\x80\x02]q\x05."), "remembers out of order"));
  CHECK(contains(fault_of("\x80\x02"
                          "e."),
                 "no mark"));
  CHECK(contains(fault_of("\x80\x02"
                          "K\x01(K\x02"
                          "e."),
                 "no list or dict"));
  CHECK(contains(fault_of("\x80\x02}(K\x01"
                          "d."),
                 "a key without a value"));
  CHECK(contains(fault_of("\x80\x02\x8a\x0a"
                          "0123456789."),
                 "more than 64 bits"));
  CHECK(contains(fault_of(snapshot([](Pickler&) {})), "has no history"));
  CHECK(contains(fault_of(snapshot([](Pickler& out) { out.raw("}"); })), "has no action"));
  CHECK(contains(fault_of(snapshot([](Pickler& out) { out.dict([&] { out.text("action").text("alloc"); }); })),
                 "has no number \"addr\""));
  CHECK(contains(fault_of(snapshot([](Pickler& out) { out.entry("alloc", 512, ~std::uint64_t{0}); })),
                 "a block of -1 bytes is less than none"));
}

TEST_CASE("Python's own pickles of every protocol are read alike") {
  const Folder folder;
  const std::string script = folder.file("make.py", R"(
import pickle, sys
events = [dict(action=a, addr=0x7f0000000000 + n, size=s, stream=0, time_us=1.5, frames=[("f", 1, None, True)])
          for a, n, s in [("alloc", 0, 512), ("alloc", 512, 70000), ("free_requested", 0, 512), ("free_completed", 0, 512), ("alloc", 0, 1 << 33)]]
for protocol in range(2, 6):
    with open(f"{sys.argv[1]}.{protocol}", "wb") as file:
        pickle.dump(dict(segments=[], device_traces=[[], events], allocator_settings={"x": -1}), file, protocol=protocol)
)");
  REQUIRE(std::system(("python3 " + script + " " + (folder / "s")).c_str()) == 0);
  for (const char* protocol : {"2", "3", "4", "5"}) {
    const Trace trace = read_trace(folder / ("s." + std::string{protocol}));
    REQUIRE(trace.events.size() == 4);
    CHECK(is(trace.events[1], 70000, 1, 0));
    CHECK(is(trace.events[3], std::uint64_t{1} << 33, 0, 0));
  }
}

TEST_CASE("noise is refused or read, and nothing else") {
  const std::string starts[] = {"", "\x80\x04", "Thread,Time,Action,Pointer,Size,Stream\n", "a,1,512,0\n",
                                "\x1f\x8b\x08"};
  const std::string alphabets[] = {"", "af,0123456789\n", "()[]}]tedusaKJX\x8c\x94.\x85NqhM\x01\x02\x03",
                                   "allocate,free0x123\n"};
  const std::string good =
      snapshot([](Pickler& out) { out.entry("alloc", 1, 2).entry("free_completed", 1, 2).entry("alloc", 1, 4); });
  const Folder folder;
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string& alphabet = alphabets[random() % 4];
    std::string text = starts[random() % 5];
    for (auto i = random() % 300; i > 0; --i)
      text += alphabet.empty() ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
    if (seed % 4 == 0) {
      text = good;
      for (auto i = 1 + random() % 4; i > 0; --i) text[random() % text.size()] = static_cast<char>(random());
    }
    const std::string path = folder.file("noise", text);
    try {
      const Trace trace = read_trace(path);
      for (const Event& event : trace.events) REQUIRE(event.slot < trace.slots);
    } catch (const Problem& problem) {
      REQUIRE(problem.status() == Exit::input);
      REQUIRE(std::string_view{problem.what()}.starts_with(path + ": "));
    }
  }
}
