# One interface target for warnings, sanitizers and the check level; every C++ target of ours links it.
add_library(gpupool_flags INTERFACE)
target_compile_options(gpupool_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
target_include_directories(gpupool_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(GPUPOOL_WERROR)
  target_compile_options(gpupool_flags INTERFACE -Werror)
endif()
# Under a sanitizer g++ 12 calls members of the standard library uninitialized that are not; -O1 keeps stacks readable.
if(GPUPOOL_SANITIZER)
  target_compile_options(gpupool_flags INTERFACE -fsanitize=${GPUPOOL_SANITIZER} -fno-omit-frame-pointer -O1 -Wno-maybe-uninitialized)
  target_link_options(gpupool_flags INTERFACE -fsanitize=${GPUPOOL_SANITIZER})
endif()
if(NOT GPUPOOL_CHECK_LEVEL STREQUAL "")
  target_compile_definitions(gpupool_flags INTERFACE GPUPOOL_CHECK_LEVEL=${GPUPOOL_CHECK_LEVEL})
endif()
