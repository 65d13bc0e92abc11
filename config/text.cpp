// See text.h.
#include "config/text.h"

#include <array>
#include <utility>

namespace gpupool {
namespace {

struct Unit {
  Bytes bytes;
  std::string_view name;
};
constexpr std::array kUnits = {Unit{1_TiB, "TiB"}, Unit{1_GiB, "GiB"}, Unit{1_MiB, "MiB"}, Unit{1_KiB, "KiB"}};
constexpr std::array kExactUnits = {kUnits[0], Unit{1'000'000'000'000, "TB"}, kUnits[1], Unit{1'000'000'000, "GB"},
                                    kUnits[2], Unit{1'000'000, "MB"},         kUnits[3], Unit{1'000, "KB"}};

// value / 10^decimals without trailing zeros.
std::string decimal(std::uint64_t value, int decimals) {
  std::uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  std::string text = std::to_string(value / scale);
  if (value % scale == 0) return text;
  std::string fraction = std::to_string(scale + value % scale).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return text + "." + fraction;
}

}  // namespace

std::string to_text(Bytes bytes) {
  if (bytes == 0) return "0";
  for (const Unit& unit : kExactUnits)
    if (bytes % unit.bytes == 0) return std::to_string(bytes / unit.bytes) + std::string{unit.name};
  return std::to_string(bytes) + "B";
}

std::string to_text(Share share) { return decimal(share.parts_per_billion, 7) + "%"; }

std::string to_text(SizeOrShare size) { return size.is_share() ? to_text(size.share) : to_text(size.bytes); }

std::string to_text(GrowthStep growth) {
  return growth.is_factor() ? decimal(growth.factor_thousandths, 3) + "x" : to_text(growth.step);
}

std::string to_text(HandleSize handle) { return handle.automatic() ? "auto" : to_text(handle.bytes); }

std::string to_text(bool on) { return on ? "on" : "off"; }

std::string to_text(Milliseconds duration) {
  const auto ms = duration.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

std::string to_text(const std::string& text) { return text; }

std::string to_text(const NameList& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string readable(Bytes bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes) continue;
    const Bytes tenths = bytes / unit.bytes * 10 + bytes % unit.bytes * 10 / unit.bytes;
    return decimal(tenths, 1) + " " + std::string{unit.name};
  }
  return std::to_string(bytes) + " bytes";
}

std::string escaped(std::string_view text, std::size_t most) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return text.size() > most ? out + "..." : out;
}

std::string in_quotes(std::string_view text) { return '"' + escaped(text) + '"'; }

}  // namespace gpupool
