// See render.h: what programs read, and the page shows.
#include <nlohmann/json.hpp>

#include "cli/report/render.h"
#include "cli/report/waste.h"

namespace gpupool::cli {
namespace {

using Json = nlohmann::ordered_json;

Json pool_json(const RankRow& row) {
  Json json{{"file", row.process->file},
            {"rank", row.process->rank},
            {"host", row.process->host},
            {"pid", row.process->pid},
            {"executable", row.process->executable},
            {"strategy", row.process->strategy},
            {"coverage", row.process->coverage}};
  if (!row.process->note.empty()) json["note"] = row.process->note;
  if (row.pool == nullptr) {
    json["passed_live.peak"] = row.process->passed_live_peak;
    json["advice_size"] = row.process->advice_size;
    if (!row.process->advice.empty()) json["advice"] = row.process->advice;
    return json;
  }
  const PoolReport& pool = *row.pool;
  json["device"] = pool.device;
  json["uuid"] = pool.uuid;
  json["card"] = pool.card;
  const auto add = [&](const std::string& name, std::string_view row_name, const auto& value) {
    if (pool.knows(row_name))
      json[name] = value;
    else
      json[name] = nullptr;
  };
#define GAUGE(name, unit, sentence) add(#name, #name, pool.name.current), add(#name ".peak", #name, pool.name.peak);
#define COUNTER(name, unit, sentence) add(#name, #name, pool.name);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  add("waste", "waste", pool.waste);
  add("internal_waste", "internal_waste", pool.internal_waste);
  add("hit_rate", "hit_rate", pool.hit_rate);
  add("external_fragmentation.peak", "external_fragmentation", pool.external_fragmentation_peak);
  add("advice_size", "advice_size", pool.advice_size);
  json["advice"] = pool.advice;
  return json;
}

}  // namespace

Json ranks_json(const std::vector<RankRow>& rows) {
  Json root{{"pools", Json::array()}, {"summary", Json::object()}, {"cards", Json::array()}, {"waste", Json::array()}};
  for (const RankRow& one : rows) root["pools"].push_back(pool_json(one));
  for (const Column& column : columns()) {
    const Spread spread = spread_of(rows, column);
    if (spread.worst == nullptr) continue;
    root["summary"][std::string{column.name}] = {{"least", spread.least},
                                                 {"most", spread.most},
                                                 {"spread", spread.most - spread.least},
                                                 {"sum", spread.sum},
                                                 {"worst_file", spread.worst->process->file}};
  }
  for (const CardSum& sum : card_sums(rows)) {
    root["cards"].push_back({{"host", sum.host},
                             {"uuid", sum.uuid},
                             {"card", sum.card},
                             {"processes", sum.processes},
                             {"reserved.peak", sum.reserved_peak},
                             {"live.peak", sum.live_peak}});
  }
  for (const WasteRow& one : top_waste(rows)) {
    root["waste"].push_back(
        {{"rank", rank_of(*one.row)}, {"kind", waste_text(one.kind)}, {"bytes", one.bytes}, {"mend", one.mend}});
  }
  return root;
}

}  // namespace gpupool::cli
