// A reader of Python pickles (protocols 2 to 5) that hold plain data: None, bool, int, float, str, bytes, list, tuple
// and dict. Whatever would import a name or call something is refused by its opcode, so that a foreign file can do
// nothing. Format: the opcodes as documented in Python's Lib/pickletools.py. Values are numbers into the arena that
// owns them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/trace/source.h"

namespace gpupool::cli {

class Pickle {
 public:
  using Value = std::uint32_t;
  enum class Type : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    list,
    dict
  };  // a tuple is a list, bytes are a text

  /// Reads all of it; a Problem names the offset of what is wrong.
  explicit Pickle(Source& source);

  Value root() const { return root_; }
  Type type(Value value) const { return nodes_[value].type; }
  std::int64_t integer(Value value) const { return nodes_[value].number; }
  const std::string& text(Value value) const { return texts_[index(value)]; }
  const std::vector<Value>& items(Value value) const { return lists_[index(value)]; }

  /// The value under a key that is a text; nullptr when there is none, or when it is no dict.
  const Value* find(Value dict, std::string_view key) const;

 private:
  struct Node {
    Type type = Type::none;
    std::int64_t number = 0;  // the integer, or where text and items lie
  };

  bool step();
  Value add(Type type, std::int64_t number);
  Value add_text(std::uint64_t bytes);
  Value add_list(Type type, std::vector<Value> items);
  void add_integer(unsigned bytes);
  std::size_t index(Value value) const { return static_cast<std::size_t>(nodes_[value].number); }
  void push(Value value) { stack_.push_back(value); }
  Value pop();
  std::vector<Value> pop_to_mark();
  void extend(Type type, const std::vector<Value>& items);
  void remember(std::uint64_t number);
  void recall(std::uint64_t number);

  Source& source_;
  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Value>> lists_;  // of a dict: key, value, key, value
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Value> memo_;
  Value root_ = 0;
};

}  // namespace gpupool::cli
