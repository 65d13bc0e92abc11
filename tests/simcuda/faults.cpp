// The table of faults, one list per symbol so that a call without faults costs one look at an empty vector.
// Guarded by the big lock.
#include "tests/simcuda/faults.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

namespace gpupool::sim {
namespace {

struct Fault {
  uint64_t first;
  uint64_t last;
  CUresult result;
  bool never_completes;
};

struct Row {
  uint64_t calls = 0;
  std::vector<Fault> faults;
};

std::array<Row, static_cast<size_t>(Symbol::kCount)>& rows() {
  static auto* const table = new std::array<Row, static_cast<size_t>(Symbol::kCount)>{};
  return *table;
}

bool g_never_completes = false;

bool parse_which(const std::string& text, Fault& fault) {
  if (text == "*") {
    fault.first = 1;
    fault.last = std::numeric_limits<uint64_t>::max();
    return true;
  }
  char* end = nullptr;
  fault.first = fault.last = std::strtoull(text.c_str(), &end, 10);
  if (*end == '-') fault.last = std::strtoull(end + 1, &end, 10);
  return *end == '\0' && fault.first >= 1 && fault.last >= fault.first;
}

bool parse_entry(const std::string& entry) {
  const size_t colon = entry.find(':');
  const size_t equals = entry.find('=', colon == std::string::npos ? 0 : colon);
  if (colon == std::string::npos || equals == std::string::npos) return false;
  const std::optional<Symbol> symbol = find_symbol(entry.substr(0, colon).c_str());
  Fault fault{};
  if (!symbol || !parse_which(entry.substr(colon + 1, equals - colon - 1), fault)) return false;
  const std::string result = entry.substr(equals + 1);
  char* end = nullptr;
  fault.result = static_cast<CUresult>(std::strtoul(result.c_str(), &end, 10));
  fault.never_completes = result == "never";
  if (!fault.never_completes && (result.empty() || *end)) return false;
  rows()[static_cast<size_t>(*symbol)].faults.push_back(fault);
  return true;
}

}  // namespace

bool set_faults(const std::string& text) {
  for (Row& row : rows()) row = Row{};
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ';');) {
    if (entry.empty() || parse_entry(entry)) continue;
    for (Row& row : rows()) row = Row{};
    return false;
  }
  return true;
}

std::optional<CUresult> next_fault(Symbol symbol) {
  Row& row = rows()[static_cast<size_t>(symbol)];
  ++row.calls;
  g_never_completes = false;
  for (const Fault& fault : row.faults) {
    if (row.calls < fault.first || row.calls > fault.last) continue;
    if (!fault.never_completes) return fault.result;
    g_never_completes = true;
  }
  return std::nullopt;
}

bool take_never_completes() { return std::exchange(g_never_completes, false); }

}  // namespace gpupool::sim
