// Between the program's C and our C++: every hook is called through here, so that nothing is ever thrown into the
// program. The one thing that is thrown is "no host memory". A tape that it met in the middle of a change is not
// touched again (Home::stop), and the program gets the driver's word for it.
#pragma once

#include "preload/real.h"

namespace gpupool {

/// Stops every pool of the process. The answer for the program.
CUresult out_of_host_memory();

template <auto body>
struct Boundary;

template <class... Arguments, CUresult (*body)(Arguments...)>
struct Boundary<body> {
  static CUresult call(Arguments... arguments) {
    try {
      return body(arguments...);
    } catch (...) {
      return out_of_host_memory();
    }
  }
};

}  // namespace gpupool
