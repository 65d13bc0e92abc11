// See json_reader.h. nlohmann's SAX interface tells no positions; the iterator it reads through does, since its lexer
// stands right behind the closing quote when a key is reported.
#include "config/json_reader.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "config/text.h"

namespace gpupool {
namespace {

using Json = nlohmann::json;

// A pointer that remembers, for all its copies, how far the text has been read.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* at, const char** read) : at_{at}, read_{read} {}
  reference operator*() const { return *at_; }
  TrackedIterator& operator++() {
    *read_ = ++at_;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const TrackedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** read_;
};

// Line and column of growing offsets, in one pass over the text.
class Places {
 public:
  explicit Places(std::string_view text) : text_{text} {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }
  void advance_to(std::size_t offset) {
    for (; at_ < std::min(offset, text_.size()); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      } else if ((static_cast<unsigned char>(text_[at_]) & 0xc0) != 0x80) {
        ++column_;
      }
    }
  }
  int line() const { return line_; }
  int column() const { return column_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// nlohmann's words without its prefix, and without raw bytes of the file.
std::string syntax_problem(std::string_view what) {
  if (const auto prefix = what.find("] "); prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
  if (const auto place = what.find(": "); what.starts_with("parse error at") && place != std::string_view::npos) {
    what.remove_prefix(place + 2);
  }
  return "is not JSON: " + escaped(what);
}

class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(std::string_view text, const char* const& read, JsonSettings& out)
      : text_{text}, read_{read}, places_{text}, out_{out} {}

  bool null() override { return scalar(JsonType::null, "null"); }
  bool boolean(bool value) override { return scalar(JsonType::boolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(JsonType::number, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(JsonType::number, std::to_string(value)); }
  // The lexer puts the locale's decimal point into the text.
  bool number_float(number_float_t, const string_t& written) override {
    string_t text = written;
    for (char& c : text) {
      if (std::string_view{"0123456789+-eE"}.find(c) == std::string_view::npos) c = '.';
    }
    return scalar(JsonType::number, text);
  }
  bool string(string_t& value) override { return scalar(JsonType::string, value); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (!open()) return false;
    if (in_list()) list_type_ = JsonType::other;
    opened_.push_back({out_.settings.size(), places_.line(), places_.column()});
    path_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    const std::size_t end = static_cast<std::size_t>(read_ - text_.data());
    places_.advance_to(opening_quote(end));
    std::string& full = path_.back();
    const std::string_view parent = path_.size() > 1 ? std::string_view{path_[path_.size() - 2]} : std::string_view{};
    full = std::string{parent} + (parent.empty() ? "" : ".") + name;
    if (in_list() || inside_comment()) return true;
    comment_depth_ = name.starts_with(kCommentMark) ? path_.size() : 0;
    if (comment_depth_ != 0) return true;
    if (!seen_.insert(full).second && !inside_duplicate()) {
      out_.duplicates.push_back({full, "is given twice", places_.line(), places_.column()});
      duplicate_depth_ = path_.size();
    }
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    const Opened opened = opened_.back();
    opened_.pop_back();
    const bool counts = !path_.empty() && !in_list() && (comment_depth_ == 0 || path_.size() < comment_depth_);
    if (counts && opened.settings == out_.settings.size())
      out_.settings.push_back({path_.back(), "{}", JsonType::empty_object, opened.line, opened.column});
    if (path_.size() < duplicate_depth_) duplicate_depth_ = 0;
    if (path_.size() < comment_depth_) comment_depth_ = 0;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (!open()) return false;
    if (list_depth_ == 0) {
      list_depth_ = depth_;
      list_type_ = JsonType::list_of_strings;
      list_text_.clear();
    } else {
      list_type_ = JsonType::other;
    }
    return true;
  }
  bool end_array() override {
    if (depth_-- != list_depth_) return true;
    list_depth_ = 0;
    return scalar(list_type_, list_type_ == JsonType::other ? "[...]" : list_text_);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    return fail(position == 0 ? 0 : position - 1, syntax_problem(error.what()));
  }

  bool fail(std::size_t offset, std::string problem) {
    places_.advance_to(offset);
    out_.syntax.push_back({{}, std::move(problem), places_.line(), places_.column()});
    return false;
  }

 private:
  bool in_list() const { return list_depth_ != 0; }
  // Within a group that is itself a duplicate, its members have been reported with it.
  bool inside_duplicate() const { return duplicate_depth_ != 0 && path_.size() > duplicate_depth_; }
  bool inside_comment() const { return comment_depth_ != 0 && path_.size() > comment_depth_; }

  bool open() {
    if (++depth_ <= kDeepestNesting) return true;
    return fail(static_cast<std::size_t>(read_ - text_.data()) - 1, "is nested too deeply");
  }

  bool scalar(JsonType type, const std::string& value) {
    if (in_list()) {
      const bool joins = type == JsonType::string && value.find(',') == std::string::npos;
      if (!joins) list_type_ = JsonType::other;
      list_text_ += (list_text_.empty() ? "" : ",") + value;
      return true;
    }
    if (path_.empty()) return fail(0, "does not hold a JSON object");
    if (comment_depth_ != 0) return true;
    out_.settings.push_back({path_.back(), value, type, places_.line(), places_.column()});
    return true;
  }

  // Quotes within a string are escaped, so the nearest one before the end that is not is where the string begins.
  std::size_t opening_quote(std::size_t end) const {
    for (std::size_t at = end - 1; at-- > 0;) {
      if (text_[at] != '"') continue;
      std::size_t first = at;
      while (first > 0 && text_[first - 1] == '\\') --first;
      if ((at - first) % 2 == 0) return at;
    }
    return 0;
  }

  struct Opened {
    std::size_t settings;  // before it
    int line;              // of its key
    int column;
  };

  std::string_view text_;
  const char* const& read_;
  Places places_;
  JsonSettings& out_;
  std::vector<Opened> opened_;     // of each open object
  std::vector<std::string> path_;  // full key at each open object
  std::set<std::string> seen_;
  std::size_t depth_ = 0;
  std::size_t duplicate_depth_ = 0;  // 0: none
  std::size_t comment_depth_ = 0;    // of the key that is a comment; 0: the last key was none
  std::size_t list_depth_ = 0;       // 0: in no list
  JsonType list_type_ = JsonType::other;
  std::string list_text_;
};

}  // namespace

JsonSettings read_json(std::string_view text) {
  JsonSettings out;
  const char* read = text.data();
  Handler handler{text, read, out};
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    handler.fail(0, "is empty");
  } else {
    Json::sax_parse(TrackedIterator{text.data(), &read}, TrackedIterator{text.data() + text.size(), &read}, &handler);
  }
  if (!out.syntax.empty()) {
    out.settings.clear();
    out.duplicates.clear();
  }
  return out;
}

}  // namespace gpupool
