# Toolchain of the artefacts that are carried to other machines: clang and libc++ as the zig package brings them, with the
# symbols of glibc 2.17, for x86-64 and 64-bit ARM alike. `scripts/package` uses it, after fetching zig into .deps/zig and building the
# libraries it links into .deps/portable/<arch>. -DGPUPOOL_ARCH=x86_64|aarch64 names the processor.
set(GPUPOOL_ARCH "${CMAKE_HOST_SYSTEM_PROCESSOR}" CACHE STRING "Processor that is built for: x86_64 or aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GPUPOOL_ARCH)

get_filename_component(gpupool_deps ${CMAKE_CURRENT_LIST_DIR}/../../.deps ABSOLUTE)
set(gpupool_zig ${gpupool_deps}/zig/ziglang/zig)
set(gpupool_glibc 2.17)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${GPUPOOL_ARCH})
set(CMAKE_C_COMPILER ${gpupool_zig} cc -target ${GPUPOOL_ARCH}-linux-gnu.${gpupool_glibc})
set(CMAKE_CXX_COMPILER ${gpupool_zig} c++ -target ${GPUPOOL_ARCH}-linux-gnu.${gpupool_glibc})
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
set(CMAKE_ASM_COMPILER_ID Clang) # which CMake cannot tell of an assembler with arguments
set(CMAKE_AR ${gpupool_deps}/zig/ar)
set(CMAKE_RANLIB ${gpupool_deps}/zig/ranlib)

set(CMAKE_FIND_ROOT_PATH ${gpupool_deps}/portable/${GPUPOOL_ARCH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The same bytes from any folder; no debug information, since nothing here is stripped by hand.
get_filename_component(gpupool_root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(CMAKE_C_FLAGS_INIT "-ffile-prefix-map=${gpupool_root}=.")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-s")
endforeach()
