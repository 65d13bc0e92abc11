// The reader of recorded traces against files made here by hand: what it makes of good ones, and what it leaves of cut,
// damaged, foreign and made-up ones. The last case feeds it noise with fixed seeds.
#include <zstd.h>

#include <random>

#include "cli/console.h"
#include "cli/trace/read.h"
#include "pool/trace_format.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool;
using namespace gpupool::cli;
using gpupool::tests::contains;

namespace {

template <class Head>
std::string raw(const Head& head) {
  return {reinterpret_cast<const char*>(&head), sizeof head};
}

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

class File {
 public:
  File() : text_(raw(TraceFileHead{})) {}

  File& block(TraceBlockKind kind, const std::string& payload, std::uint32_t count = 0, std::uint64_t dropped = 0) {
    std::string packed(ZSTD_compressBound(payload.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), 1));
    TraceBlockHead head;
    head.kind = kind;
    head.number = blocks_;
    head.count = count;
    head.payload = static_cast<std::uint32_t>(payload.size());
    head.packed = static_cast<std::uint32_t>(packed.size());
    head.dropped = dropped;
    head.ticks = 1000 + 1000 * blocks_;
    head.monotonic_ns = 5000 + 2000 * blocks_;  // 2 ns a tick
    ++blocks_;
    head.checksum = trace_checksum(head, bytes_of(packed));
    text_ += raw(head) + packed;
    return *this;
  }
  File& text(const std::string& lines) { return block(TraceBlockKind::kText, lines); }
  File& records(const std::vector<TraceRecord>& records, std::uint64_t dropped = 0) {
    std::string payload(records.size() * sizeof(TraceRecord), '\0');
    spread_records(records, reinterpret_cast<unsigned char*>(payload.data()));
    return block(TraceBlockKind::kRecords, payload, static_cast<std::uint32_t>(records.size()), dropped);
  }
  const std::string& done() const { return text_; }

 private:
  std::string text_;
  std::uint32_t blocks_ = 0;
};

TraceRecord request(std::uint64_t address, std::uint64_t bytes, std::uint64_t ticks = 1000, std::uint16_t pool = 0) {
  return {.ticks = ticks, .address = address, .bytes = bytes, .stream = 3, .thread = 9, .pool = pool, .call = 4};
}

TraceRecord release(std::uint64_t address, std::uint16_t pool = 0) {
  TraceRecord record = request(address, 0, 1000, pool);
  record.kind = TraceKind::kFree;
  return record;
}

TraceRecord mark(MarkKind kind, std::uint64_t reserved, std::uint16_t pool = 0) {
  TraceRecord record{.address = 2, .bytes = 700, .stream = reserved, .pool = pool};
  record.kind = static_cast<TraceKind>(unsigned(TraceKind::kMark) + unsigned(kind));
  return record;
}

const char kHead[] =
    "process 0 pid 77\nprocess 0 rank 3\nprocess 0 executable /usr/bin/a program\ncall 4 name cuMemAllocAsync\n"
    "pool 0 device 0\npool 0 card Card One\npool 0 card_bytes 1000000\nlater 0 thing x\n\npool x device y\npool 1 "
    "device 2\n";

std::vector<Trace> read(const std::string& bytes) { return read_traces_from_bytes(bytes, "name"); }

std::string fault_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const Problem& problem) {
    CHECK(problem.status() == Exit::input);
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a recorded trace: events, times, origin, one trace for each device") {
  const std::vector<Trace> traces =
      read(File().text(kHead).records({request(512, 100, 1500), request(1024, 7, 1600, 1), release(512)}).done());
  REQUIRE(traces.size() == 2);
  const Trace& trace = traces[0];
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].bytes == 100);
  CHECK(trace.events[0].stream == 0);
  CHECK(trace.events[0].seen.time_ns == 1000);  // 500 ticks after the beginning
  CHECK(trace.events[0].seen.address == 512);
  CHECK(trace.calls[trace.events[0].seen.call] == "cuMemAllocAsync");
  CHECK(trace.origin.pid == 77);
  CHECK(trace.origin.rank == "3");
  CHECK(trace.origin.executable == "/usr/bin/a program");
  CHECK(trace.origin.card == "Card One");
  CHECK(trace.origin.card_bytes == 1'000'000);
  CHECK(trace.notes.empty());
  CHECK(traces[1].origin.device == 2);
  CHECK(traces[1].requests == 1);
}

TEST_CASE("marks carry what the device's pools hold together; a pool that ends takes its blocks along") {
  const std::vector<Trace> traces =
      read(File()
               .text("pool 0 device 0\npool 1 device 0\n")
               .records({mark(MarkKind::growth, 100, 0), request(512, 1, 1, 0), mark(MarkKind::growth, 30, 1),
                         request(1024, 1, 1, 1), mark(MarkKind::retired, 0, 0)})
               .done());
  REQUIRE(traces.size() == 1);
  const Trace& trace = traces[0];
  REQUIRE(trace.marks.size() == 3);
  CHECK(trace.marks[0].reserved == 100);
  CHECK(trace.marks[1].reserved == 130);
  CHECK(trace.marks[1].event == 1);
  CHECK(trace.marks[2].reserved == 30);
  REQUIRE(trace.events.size() == 3);
  CHECK(trace.events[2].bytes == 0);
  CHECK(trace.events[2].seen.address == 512);
}

TEST_CASE("records that are missing are made up for, and said") {
  const std::vector<Trace> traces =
      read(File().text(kHead).records({request(512, 100), request(512, 200), release(4096)}, 5).done());
  const Trace& trace = traces[0];
  CHECK(trace.requests == 2);
  CHECK(trace.events.size() == 3);
  CHECK(trace.dropped == 5);
  CHECK(trace.notes == std::vector<std::string>{"5 records were lost when it was recorded",
                                                "1 frees that were not recorded are added",
                                                "1 frees of unknown blocks are left out"});
}

TEST_CASE("whole blocks are used: a cut end, damage in the middle") {
  const std::string two = File().text(kHead).records({request(512, 100)}).done();
  const std::string three = File().text(kHead).records({request(512, 100)}).records({request(1024, 100)}).done();
  const std::string four =
      File().text(kHead).records({request(512, 100)}).records({request(1024, 100)}).records({request(2048, 9)}).done();
  for (std::size_t cut = 1; cut < three.size() - two.size(); ++cut) {
    const std::vector<Trace> traces = read(three.substr(0, three.size() - cut));
    REQUIRE(traces[0].requests == 1);
    REQUIRE(traces[0].notes.size() == 1);
    CHECK(contains(traces[0].notes[0], "byte " + std::to_string(two.size()) + ": the last block is cut off"));
  }
  for (std::size_t at = two.size(); at < three.size(); ++at) {
    CAPTURE(at - two.size());
    std::string damaged = four;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const std::vector<Trace> traces = read(damaged);
    CHECK(traces[0].requests >= 1);
    CHECK_FALSE(traces[0].notes.empty());
    if (traces[0].requests == 2) {
      CHECK(contains(traces[0].notes[0], "byte " + std::to_string(two.size()) + ": "));
      CHECK(traces[0].events.back().bytes == 9);
    }
  }
}

TEST_CASE("files that are no trace of this version say so") {
  TraceFileHead later;
  later.version = 9;
  CHECK(contains(fault_of(raw(later)), "name: byte 16: the trace has version 9; this command reads version 1"));
  CHECK(contains(fault_of(File().done()), "the trace ends before its first whole block"));
  CHECK(contains(fault_of(File().done().substr(0, 11)), "the file ends too early"));
  later = {};
  later.bytes = 1 << 20;
  CHECK(contains(fault_of(raw(later)), "the head of the trace is damaged"));
  const Trace empty = read(File().text(kHead).done()).front();
  CHECK(empty.requests == 0);
}

TEST_CASE("records that are whole and make no sense do no harm") {
  std::mt19937_64 random(7);
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<TraceRecord> records(200);
    for (TraceRecord& record : records) {
      record.ticks = random();
      record.address = random() % 8 * 512;
      record.bytes = random() % 3 ? random() % 4096 : random();
      record.stream = random() % 4;
      record.pool = static_cast<std::uint16_t>(random() % 2 ? random() % 3 : random());
      record.call = static_cast<std::uint16_t>(random());
      record.kind = static_cast<TraceKind>(random() % 16);
      record.flags = static_cast<std::uint8_t>(random());
    }
    for (const Trace& trace : read(File().text(kHead).records(records).done())) {
      std::vector<bool> live(trace.slots);
      for (const Event& event : trace.events) {
        REQUIRE(event.slot < trace.slots);
        REQUIRE(live[event.slot] == (event.bytes == 0));
        live[event.slot] = event.bytes != 0;
        REQUIRE(event.seen.call < trace.calls.size());
        REQUIRE((event.stream == kPlain || event.stream < trace.streams));
      }
    }
  }
}

TEST_CASE("noise in a recorded trace is left out or refused, and nothing else") {
  const std::string good =
      File().text(kHead).records({request(512, 100), request(1024, 100)}).records({release(512)}).done();
  for (unsigned seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text = good;
    for (auto i = 1 + random() % 8; i > 0; --i) text[random() % text.size()] = static_cast<char>(random());
    if (seed % 3 == 0) text.insert(random() % text.size(), text.substr(random() % text.size(), random() % 200));
    try {
      for (const Trace& trace : read(text)) {
        for (const Event& event : trace.events) REQUIRE(event.slot < trace.slots);
      }
    } catch (const Problem& problem) {
      REQUIRE(problem.status() == Exit::input);
    }
  }
}
