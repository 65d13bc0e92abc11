// See plan.h.
#include "cli/size/plan.h"

#include <algorithm>

#include "cli/console.h"
#include "cli/settings.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

using Json = nlohmann::ordered_json;

Bytes rounded_up(Bytes bytes) { return (bytes + kSizeStep - 1) / kSizeStep * kSizeStep; }

struct Fit {
  Bytes each = 0;  // what one process takes of the card
  Bytes count = 0;
};
Fit fit_of(const SizePlan& plan, Bytes size) {
  const Bytes each = size + plan.headroom;
  return {each, each == 0 ? 0 : plan.card / each};
}

std::string fit_text(const SizePlan& plan, Bytes size) {
  if (plan.card == 0) return "";
  const Fit fit = fit_of(plan, size);
  const std::string name = plan.card_name.empty() ? "a card" : escaped(plan.card_name);
  std::string text = "on " + name + " of " + readable(plan.card) + ": ";
  text += fit.count == 0   ? "does not fit"
          : fit.count == 1 ? "fits, once"
                           : "fits, " + std::to_string(fit.count) + " times";
  return text + " (" + readable(size) + " of pool" +
         (plan.headroom ? " and " + readable(plan.headroom) + " of driver and libraries" : "") + " each)\n";
}

Bytes size_of(const SizeRow& row, Share margin) {
  return row.reordered != 0 ? row.reordered : with_margin(row.need, margin);
}

std::string spare_text(const SizePlan& plan) {
  if (plan.reordered != 0) return ", and what slightly other orders take";
  return plan.margin.parts_per_billion != 0 ? ", and " + to_text(plan.margin) + " to spare" : "";
}

// pool.max where the user has set it, else 0.
Bytes most_of(const Arguments& arguments, Bytes card) {
  Loaded loaded = arguments.has("--config") ? loaded_from(arguments.value("--config")) : load(nullptr);
  for (const Setting& setting : settings_of("size", arguments)) {
    if (find_option(setting.key) != nullptr) apply(loaded, setting);
  }
  const SizeOrShare& most = loaded.options.pool.max;
  return most == load(nullptr).options.pool.max ? 0 : most.of(card);
}

// After it has been printed: what cannot be written is not lost.
Exit kept(const Arguments& arguments, const Json& next, Exit status) {
  if (arguments.has("--write")) write_new_file(arguments.value("--write"), next.dump(2) + "\n");
  return status;
}

}  // namespace

Bytes with_margin(Bytes need, Share margin) { return rounded_up(need + margin.of(need)); }

Share share_of(std::string_view option, const std::string& text) {
  const grammar::Quantity q = grammar::scan(text);
  Share share;
  const bool is_percent = q.unit == "%";
  const bool is_share = q.fault == Fault::none && (is_percent || q.unit.empty());
  const unsigned __int128 parts = is_share ? q.times(Share::kWhole / (is_percent ? 100 : 1)) : 0;
  if (!is_share || parts > Share::kWhole)
    throw Problem(Exit::usage, std::string{option} + ": " + in_quotes(text) + " is no share from 0% to 100%");
  share.parts_per_billion = static_cast<std::uint32_t>(parts);
  return share;
}

Exit conclude(const Arguments& arguments, const SizePlan& plan, Exit status) {
  const Bytes need = std::ranges::max_element(plan.rows, {}, &SizeRow::need)->need;
  const Bytes most = most_of(arguments, plan.card);
  const Bytes wanted = plan.reordered != 0 ? plan.reordered : with_margin(need, plan.margin);
  const Bytes size = need <= most ? std::min(wanted, most) : wanted;
  if (most != 0 && need > most) {
    note("pool.max=" + to_text(Bytes{most}) + " is less than the need, and is left out");
    if (status == Exit::ok) status = Exit::warning;
  } else if (size < plan.reordered) {
    note("pool.max=" + to_text(Bytes{most}) + " holds the need as recorded; slightly other orders were served by " +
         to_text(plan.reordered));
  }
  Json next{{"pool", {{"strategy", "best_fit"}, {"size", to_text(size)}}}};
  if (need <= most) next["pool"]["max"] = to_text(Bytes{most});
  if (plan.headroom != 0) next["pool"]["headroom"] = to_text(rounded_up(plan.headroom));
  if (plan.handle != 0) next["pool"]["handle"] = to_text(plan.handle);
  if (arguments.has("--json")) {
    Json json{{"needed_bytes", need}, {"size_bytes", size}, {"configuration", next}, {"rows", Json::array()}};
    if (plan.headroom != 0) json["outside_bytes"] = plan.headroom;
    if (plan.card != 0) {
      const Fit fit = fit_of(plan, size);
      json["card"] = {{"name", plan.card_name}, {"bytes", plan.card}, {"each_bytes", fit.each}, {"fits", fit.count}};
    }
    if (!plan.advice.empty()) json["advice"] = plan.advice;
    for (const SizeRow& row : plan.rows) {
      Json entry{{"name", row.who}, {"needed_bytes", row.need}, {"size_bytes", size_of(row, plan.margin)}};
      if (row.reordered != 0) entry["reordered_bytes"] = row.reordered;
      entry.update(row.facts);
      json["rows"].push_back(std::move(entry));
    }
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return kept(arguments, next, status);
  }
  std::string text;
  for (const SizeRow& row : plan.rows) {
    text += padded(readable(row.need), 12);
    if (plan.rows.size() > 1) text += padded("pool.size=" + to_text(size_of(row, plan.margin)), 22);
    text += escaped(row.who, row.who.size()) + "\n";
  }
  text += "next time: pool.size=" + to_text(size) + " (" + (plan.rows.size() > 1 ? "the largest need, " : "need ") +
          readable(need) + spare_text(plan) + ", in steps of " + readable(kSizeStep) + ")\n" + fit_text(plan, size) +
          "as a file:\n" + next.dump(2) + "\n";
  for (const std::string& sentence : plan.advice) text += sentence + "\n";
  print(text);
  return kept(arguments, next, status);
}

}  // namespace gpupool::cli
