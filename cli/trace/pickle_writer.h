// Writes a Python pickle of plain data, protocol 4, one value after another: what Python's pickle and the reader of
// PyTorch's memory viewer both take (it knows few opcodes, and takes long lists item by item). Opcodes as documented in
// Python's Lib/pickletools.py. Whoever uses it keeps the order: a dict is begun, then key and value are written and
// joined to it, again and again.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpupool::cli {

class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x04") {}

  PickleWriter& begin_dict() { return op('}'); }
  PickleWriter& begin_list() { return op(']'); }
  PickleWriter& empty_list() { return op(']'); }
  /// Joins the last value to the list before it.
  PickleWriter& append() { return op('a'); }
  /// Joins the last key and value to the dict before them.
  PickleWriter& set() { return op('s'); }

  PickleWriter& text(std::string_view value) {
    const auto known = memo_.find(std::string{value});
    if (known != memo_.end()) return op('h').byte(known->second);
    op('X').little(value.size(), 4);
    out_ += value;
    if (memo_.size() < 256) {  // what one byte can name
      const auto number = static_cast<std::uint8_t>(memo_.size());
      memo_.emplace(value, number);
      op('q').byte(number);
    }
    return *this;
  }
  PickleWriter& integer(std::int64_t value) { return op('\x8a').byte(8).little(static_cast<std::uint64_t>(value), 8); }
  PickleWriter& boolean(bool value) { return op(value ? '\x88' : '\x89'); }
  PickleWriter& pair(std::int64_t first, std::int64_t second) { return integer(first).integer(second).op('\x86'); }

  PickleWriter& item(std::string_view key, std::int64_t value) { return text(key).integer(value).set(); }
  PickleWriter& item(std::string_view key, std::string_view value) { return text(key).text(value).set(); }

  std::string finish() { return std::move(op('.').out_); }

 private:
  PickleWriter& op(char code) { return out_ += code, *this; }
  PickleWriter& byte(std::uint8_t value) { return out_ += static_cast<char>(value), *this; }
  PickleWriter& little(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
    return *this;
  }

  std::string out_;
  std::unordered_map<std::string, std::uint8_t> memo_;
};

}  // namespace gpupool::cli
