# One interface target for warnings, sanitizers and the check level; every C++ target of ours links it.
add_library(gpupool_flags INTERFACE)
target_compile_options(gpupool_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
target_include_directories(gpupool_flags INTERFACE ${CMAKE_SOURCE_DIR})
# Optimizing, g++ 12 takes "text" + std::string for overlapping copies (GCC bug 105651) and strings in temporary aggregates for
# uninitialized; so does every g++ under a sanitizer, which also finds arrays overrun in std::sort. All false.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (GPUPOOL_SANITIZER OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13))
  target_compile_options(gpupool_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND GPUPOOL_SANITIZER)
  target_compile_options(gpupool_flags INTERFACE -Wno-array-bounds)
endif()
if(GPUPOOL_WERROR)
  target_compile_options(gpupool_flags INTERFACE -Werror)
endif()
# -O1 keeps the stacks of a sanitizer's reports readable. With UndefinedBehaviorSanitizer's checks it takes compilers twice as long as
# none, which only targets with the property GPUPOOL_BUSY are worth.
if(GPUPOOL_SANITIZER)
  set(gpupool_optimization -O1)
  if(GPUPOOL_SANITIZER MATCHES undefined AND NOT GPUPOOL_FUZZER)
    set(gpupool_optimization $<IF:$<BOOL:$<TARGET_PROPERTY:GPUPOOL_BUSY>>,-O1,-O0>)
  endif()
  target_compile_options(gpupool_flags INTERFACE -fsanitize=${GPUPOOL_SANITIZER} -fno-omit-frame-pointer
    ${gpupool_optimization})
  target_link_options(gpupool_flags INTERFACE -fsanitize=${GPUPOOL_SANITIZER})
  if(GPUPOOL_SANITIZER MATCHES address)
    target_sources(gpupool_flags INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/cmake/sanitizer_options.c>)
  endif()
endif()
if(GPUPOOL_FUZZER)
  target_compile_options(gpupool_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(NOT GPUPOOL_CHECK_LEVEL STREQUAL "")
  target_compile_definitions(gpupool_flags INTERFACE GPUPOOL_CHECK_LEVEL=${GPUPOOL_CHECK_LEVEL})
endif()
