// See forms.h: OpenMetrics. Families are expanded from stats.def; their names end in the base unit, counters in _total.
// The types are those that the older text format knows as well, so that both kinds of parser take it.
#include <cstdio>
#include <functional>

#include "cli/top/forms.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

struct Sample {
  const PageCopy* copy;
  const PoolSlot* pool;  // null in metrics of the process
  std::size_t number;    // of the pool in its process
};

std::string label(std::string_view name, const std::string& value) {
  std::string text{name};
  text += "=\"";
  for (const char c : escaped(value, value.size())) {
    if (c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

std::string labels(const Sample& sample) {
  const PageIdentity& who = sample.copy->page->identity;
  const std::string path = who.executable.get();
  std::string text = "{" + label("pid", std::to_string(who.pid)) + "," +
                     label("pid_namespace", std::to_string(who.pid_namespace)) + "," +
                     label("executable", path.substr(path.rfind('/') + 1)) + "," + label("rank", who.rank.get());
  if (sample.pool) {
    text += "," + label("device", std::to_string(sample.pool->device)) + "," + label("uuid", sample.pool->uuid.get());
    text += "," + label("pool", std::to_string(sample.number));
  }
  return text + "}";
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

enum class Kind { gauge, counter };

class Exposition {
 public:
  explicit Exposition(const std::vector<PageCopy>& pages) {
    for (const PageCopy& copy : pages) {
      if (copy.life == Life::kRunning) running_.push_back(&copy);
    }
  }

  /// One family: `name` without its unit, which is "" for plain counts.
  void pools(const std::string& name, const std::string& unit, Kind kind, const std::string& help,
             const std::function<std::string(const PoolSlot&)>& value) {
    const std::string full = head(name, unit, kind, help);
    for (const PageCopy* copy : running_) {
      std::size_t count = 0;
      for (const PoolSlot* pool : copy->slots()) line(full, kind, labels({copy, pool, count++}), value(*pool));
    }
  }
  void processes(const std::string& name, const std::string& unit, Kind kind, const std::string& help,
                 const std::function<std::string(const Page&)>& value) {
    const std::string full = head(name, unit, kind, help);
    for (const PageCopy* copy : running_) line(full, kind, labels({copy, nullptr, 0}), value(*copy->page));
  }
  std::string finish() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::string head(const std::string& name, const std::string& unit, Kind kind, const std::string& help) {
    const bool has_unit = unit.empty() || name.ends_with("_" + unit);
    const std::string full = "gpupool_" + name + (has_unit ? "" : "_" + unit);
    text_ += "# TYPE " + full + (kind == Kind::counter ? " counter\n" : " gauge\n");
    if (!unit.empty()) text_ += "# UNIT " + full + " " + unit + "\n";
    text_ += "# HELP " + full + " " + help + ".\n";
    return full;
  }
  void line(const std::string& full, Kind kind, const std::string& of, const std::string& value) {
    text_ += full + (kind == Kind::counter ? "_total" : "") + of + " " + value + "\n";
  }

  std::vector<const PageCopy*> running_;
  std::string text_;
};

// The base unit of OpenMetrics, and a value in it.
std::string base_unit(std::string_view unit) { return unit == "bytes" ? "bytes" : unit == "ns" ? "seconds" : ""; }
std::string in_base_unit(std::string_view unit, std::uint64_t value) {
  return unit == "ns" ? number(double(value) / 1e9) : number(value);
}
// "pool_ns" is "pool" seconds.
std::string without_unit(std::string name, std::string_view unit) {
  const std::string end = "_" + std::string{unit};
  if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

}  // namespace

std::string openmetrics(const std::vector<PageCopy>& pages) {
  Exposition out(pages);
#define GAUGE(name, unit, sentence)                                                                        \
  out.pools(without_unit(#name, #unit), base_unit(#unit), Kind::gauge, sentence,                           \
            [](const PoolSlot& pool) { return in_base_unit(#unit, pool.stats.name.current()); });          \
  out.pools(without_unit(#name, #unit) + "_peak", base_unit(#unit), Kind::gauge, sentence ", at its peak", \
            [](const PoolSlot& pool) { return in_base_unit(#unit, pool.stats.name.peak()); });
#define COUNTER(name, unit, sentence)                                              \
  out.pools(without_unit(#name, #unit), base_unit(#unit), Kind::counter, sentence, \
            [](const PoolSlot& pool) { return in_base_unit(#unit, pool.stats.name.get()); });
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  out.pools("limit", "bytes", Kind::gauge, "the most the pool may hold",
            [](const PoolSlot& pool) { return number(pool.limit); });
  out.pools("waste", "ratio", Kind::gauge, "needed memory that live blocks at their peak did not fill",
            [](const PoolSlot& pool) { return number(share_lost(pool.stats.live.peak(), pool.stats.needed.peak())); });
  out.processes("passed_live", "bytes", Kind::gauge, "device memory that the driver serves",
                [](const Page& page) { return number(page.passed.live.load()); });
  out.processes("lifetime", "seconds", Kind::gauge, "time since the first CUDA call",
                [](const Page& page) { return number(double(page.seen_ms.get()) / 1000); });
  return std::move(out).finish();
}

}  // namespace gpupool::cli
