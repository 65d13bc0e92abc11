// See waste.h.
#include "cli/report/waste.h"

#include <algorithm>

#include "config/bytes.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

std::uint64_t beyond(std::uint64_t whole, std::uint64_t part) { return whole > part ? whole - part : 0; }

std::string mend_idle(const PoolReport& pool) {
  if (pool.pre_reserved == 0) return "pool.growth with a smaller step";
  return "pool.size=" + to_text(Bytes{pool.advice_size}) + ", or pool.strategy=auto_growth";
}

}  // namespace

std::string_view waste_text(WasteKind kind) {
  switch (kind) {
    case WasteKind::idle:
      return "reserved and never needed";
    case WasteKind::between:
      return "lost between blocks";
    case WasteKind::rounding:
      return "rounding up to 512 bytes";
  }
  return "";
}

std::vector<WasteRow> top_waste(const std::vector<RankRow>& rows) {
  std::vector<WasteRow> out;
  const auto add = [&](const RankRow& row, WasteKind kind, std::uint64_t bytes, std::string mend) {
    if (bytes >= 1_MiB) out.push_back({&row, kind, bytes, std::move(mend)});
  };
  for (const RankRow& row : rows) {
    if (row.pool == nullptr) continue;
    const PoolReport& pool = *row.pool;
    if (pool.knows("needed")) {
      add(row, WasteKind::idle, beyond(pool.reserved.peak, pool.needed.peak), mend_idle(pool));
      add(row, WasteKind::between, beyond(pool.needed.peak, pool.live.peak), "a smaller pool.handle");
    }
    add(row, WasteKind::rounding, beyond(pool.live.peak, pool.requested.peak), "");
  }
  std::ranges::stable_sort(out, std::greater{}, &WasteRow::bytes);
  return out;
}

}  // namespace gpupool::cli
