// What `gpupool top` shows, whatever the form: one row for each pool of each process, made of one look at the live
// pages and, for rates, of the look before it. Values; no I/O.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "live/reader.h"

namespace gpupool::cli {

/// One pool, or a process that has none because the driver serves it.
struct TopRow {
  std::string page;  // the name of its live page
  std::uint64_t pid = 0;
  bool gone = false;
  std::string executable;  // escaped, without its folder
  std::string rank;
  std::uint64_t device = 0;
  std::string uuid;
  std::string card;
  std::uint64_t reserved = 0;
  std::uint64_t live = 0;
  std::uint64_t limit = 0;
  double waste = 0;
  std::uint64_t requests = 0;
  double requests_per_second = 0;             // since the last look; on average since its beginning at the first
  std::vector<std::uint64_t> live_over_time;  // of the whole process, oldest first

  std::uint64_t free() const { return reserved > live ? reserved - live : 0; }
};

/// What a look remembers for the next one: when, and the requests of each pool by page and number.
struct Look {
  std::uint64_t ms = 0;  // a steady clock
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> requests;
};

struct TopRows {
  std::vector<TopRow> rows;
  Look look;
};
TopRows top_rows(const std::vector<PageCopy>& pages, const Look& before, std::uint64_t now_ms);

/// A column of the table, in order.
struct TopColumn {
  std::string_view name;
  std::size_t width = 0;
  bool to_the_right = false;
  std::string (*text)(const TopRow& row);
  bool (*before)(const TopRow& a, const TopRow& b);  // the order when sorted by it
};
const std::vector<TopColumn>& top_columns();

enum class Letters { ascii, unicode };
/// `width` characters that show how a value went, scaled to the largest.
std::string sparkline(const std::vector<std::uint64_t>& values, std::size_t width, Letters letters);

}  // namespace gpupool::cli
