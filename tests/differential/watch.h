// Which call the program is in, for when it does not come back: a driver that crashes or waits without an end says
// nothing itself. One thread acts at a time (threads.h), so there is one such call in the program.
#pragma once

#include <type_traits>

namespace differential {

/// The kind of step that is played; a text without an end of life.
void note_step(const char* kind);

/// From now on a crash names the step and the call, and a call that has not returned for so long ends the program.
void watch(unsigned patience_seconds);

/// While it lives the program is in the call of that name.
class InCall {
 public:
  explicit InCall(const char* name);
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

template <class Function>
struct Noted;

/// A function that says so while it runs.
template <class Result, class... Arguments>
struct Noted<Result(Arguments...)> {
  Result (*function)(Arguments...) = nullptr;
  const char* name = "";

  Result operator()(Arguments... arguments) const {
    const InCall in(name);
    return function(arguments...);
  }
};

/// Of a declared function; for FUNCTION rows.
template <class Pointer>
using NotedAs = Noted<std::remove_pointer_t<Pointer>>;

}  // namespace differential
