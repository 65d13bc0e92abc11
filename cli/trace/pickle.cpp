// See pickle.h.
#include "cli/trace/pickle.h"

#include <cstdio>
#include <limits>

namespace gpupool::cli {
namespace {

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kNone = 'N',
  kTrue = 0x88,
  kFalse = 0x89,
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kFloat = 'G',
  kText1 = 0x8c,
  kText4 = 'X',
  kText8 = 0x8d,
  kString1 = 'U',
  kString4 = 'T',
  kBytes1 = 'C',
  kBytes4 = 'B',
  kBytes8 = 0x8e,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kList = 'l',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kDict = 'd',
  kPut1 = 'q',
  kPut4 = 'r',
  kGet1 = 'h',
  kGet4 = 'j',
  kMemoize = 0x94,
  kProtocol = 0x80,
  kFrame = 0x95,
};

std::string shown(std::uint8_t opcode) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%02x", opcode);
  return text;
}

}  // namespace

Pickle::Pickle(Source& source) : source_(source) {
  while (step()) {
  }
}

const Pickle::Value* Pickle::find(Value dict, std::string_view key) const {
  if (type(dict) != Type::dict) return nullptr;
  const std::vector<Value>& pairs = items(dict);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (type(pairs[i]) == Type::text && text(pairs[i]) == key) return &pairs[i + 1];
  }
  return nullptr;
}

/// One opcode; false after the last.
bool Pickle::step() {
  const std::uint8_t opcode = source_.byte();
  switch (opcode) {
    case kProtocol:
      source_.number(1);
      return true;
    case kFrame:
      source_.number(8);
      return true;
    case kStop:
      root_ = pop();
      return false;
    case kMark:
      marks_.push_back(stack_.size());
      return true;
    case kPop:
      pop();
      return true;
    case kPopMark:
      pop_to_mark();
      return true;
    case kDup:
      push(pop()), push(stack_.back());
      return true;
    case kNone:
      push(add(Type::none, 0));
      return true;
    case kTrue:
      push(add(Type::boolean, 1));
      return true;
    case kFalse:
      push(add(Type::boolean, 0));
      return true;
    case kInt1:
      push(add(Type::integer, static_cast<std::int64_t>(source_.number(1))));
      return true;
    case kInt2:
      push(add(Type::integer, static_cast<std::int64_t>(source_.number(2))));
      return true;
    case kInt4:
      push(add(Type::integer, static_cast<std::int32_t>(source_.number(4))));
      return true;
    case kLong1:
      add_integer(source_.byte());
      return true;
    case kLong4:
      add_integer(static_cast<unsigned>(source_.number(4)));
      return true;
    case kFloat:
      source_.number(8), push(add(Type::real, 0));
      return true;  // no field that is read here is a float
    case kText1:
    case kString1:
    case kBytes1:
      push(add_text(source_.number(1)));
      return true;
    case kText4:
    case kString4:
    case kBytes4:
      push(add_text(source_.number(4)));
      return true;
    case kText8:
    case kBytes8:
      push(add_text(source_.number(8)));
      return true;
    case kEmptyList:
    case kEmptyTuple:
      push(add_list(Type::list, {}));
      return true;
    case kEmptyDict:
      push(add_list(Type::dict, {}));
      return true;
    case kList:
    case kTuple:
      push(add_list(Type::list, pop_to_mark()));
      return true;
    case kDict:
      push(add_list(Type::dict, pop_to_mark()));
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      std::vector<Value> items(opcode - kTuple1 + 1u);
      for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
      push(add_list(Type::list, std::move(items)));
      return true;
    }
    case kAppend: {
      const Value item = pop();
      extend(Type::list, {item});
      return true;
    }
    case kAppends:
      extend(Type::list, pop_to_mark());
      return true;
    case kSetItem: {
      const Value value = pop();
      const Value key = pop();
      extend(Type::dict, {key, value});
      return true;
    }
    case kSetItems:
      extend(Type::dict, pop_to_mark());
      return true;
    case kPut1:
      remember(source_.number(1));
      return true;
    case kPut4:
      remember(source_.number(4));
      return true;
    case kMemoize:
      remember(memo_.size());
      return true;
    case kGet1:
      recall(source_.number(1));
      return true;
    case kGet4:
      recall(source_.number(4));
      return true;
    default:
      source_.fault_at_offset("the pickle holds more than plain data (opcode " + shown(opcode) +
                              "), which is not read");
  }
}

Pickle::Value Pickle::add(Type type, std::int64_t number) {
  if (nodes_.size() == std::numeric_limits<Value>::max()) source_.fault_at_offset("the pickle holds too many values");
  nodes_.push_back({type, number});
  return static_cast<Value>(nodes_.size() - 1);
}

Pickle::Value Pickle::add_text(std::uint64_t bytes) {
  texts_.push_back(source_.text(bytes));
  return add(Type::text, static_cast<std::int64_t>(texts_.size() - 1));
}

Pickle::Value Pickle::add_list(Type type, std::vector<Value> items) {
  if (type == Type::dict && items.size() % 2 != 0) source_.fault_at_offset("a dict has a key without a value");
  lists_.push_back(std::move(items));
  return add(type, static_cast<std::int64_t>(lists_.size() - 1));
}

/// An integer of any length, as long as its value has 64 bits.
void Pickle::add_integer(unsigned bytes) {
  if (bytes > 8 && !(bytes == 9 && source_.peek(9).size() == 9 && source_.peek(9)[8] == 0)) {
    source_.fault_at_offset("an integer has more than 64 bits");
  }
  const unsigned used = bytes > 8 ? 8 : bytes;
  std::uint64_t value = source_.number(used);
  if (used > 0 && used < 8 && (value >> (8 * used - 1)) != 0) value |= ~std::uint64_t{0} << (8 * used);
  if (bytes > used) source_.number(1);
  push(add(Type::integer, static_cast<std::int64_t>(value)));
}

Pickle::Value Pickle::pop() {
  if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
    source_.fault_at_offset("the pickle takes more than it has put");
  const Value value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<Pickle::Value> Pickle::pop_to_mark() {
  if (marks_.empty()) source_.fault_at_offset("the pickle has no mark here");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Value> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

/// Adds to the list or dict on top of the stack.
void Pickle::extend(Type wanted, const std::vector<Value>& items) {
  const Value top = pop();
  push(top);
  if (type(top) != wanted || (wanted == Type::dict && items.size() % 2 != 0))
    source_.fault_at_offset("the pickle adds to what is no list or dict");
  std::vector<Value>& list = lists_[index(top)];
  list.insert(list.end(), items.begin(), items.end());
}

void Pickle::remember(std::uint64_t number) {
  const Value top = pop();
  push(top);
  if (number > memo_.size()) source_.fault_at_offset("the pickle remembers out of order");
  if (number == memo_.size()) memo_.push_back(top);
  memo_[static_cast<std::size_t>(number)] = top;
}

void Pickle::recall(std::uint64_t number) {
  if (number >= memo_.size()) source_.fault_at_offset("the pickle recalls what it has not remembered");
  push(memo_[static_cast<std::size_t>(number)]);
}

}  // namespace gpupool::cli
