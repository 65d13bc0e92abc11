// A second process of the same program, started anew because CUDA does not survive a fork: `Partner` runs another case
// of it and talks to it over a pair of sockets; the case at the other end uses `other_side()`.
#pragma once

#include <cstddef>
#include <string>

namespace partner {

/// With the parent's preload, or on the plain driver.
enum class Preload : unsigned char { kSame, kNone };

class Partner {
 public:
  explicit Partner(const char* name, Preload preload = Preload::kSame);
  /// Waits for its end, which must be a success.
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  int line() const { return line_; }
  /// Ends it at once.
  void kill();

 private:
  int line_ = -1;
  int process_ = -1;
};

/// The line to the process that started this one.
int other_side();

void send(int line, const void* bytes, std::size_t count);
void receive(int line, void* bytes, std::size_t count);

template <class Value>
void send(int line, const Value& value) {
  send(line, &value, sizeof value);
}
template <class Value>
Value receive(int line) {
  Value value{};
  receive(line, &value, sizeof value);
  return value;
}

}  // namespace partner
