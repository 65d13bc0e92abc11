# Everything that is found, not built: CUDA's headers (never its libraries), spdlog and fmt as headers, nlohmann/json, CLI11, zstd, Catch2.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)

# CUDA headers: an installed toolkit, or what scripts/fetch-cuda-headers put into .deps/cuda.
find_path(GPUPOOL_CUDA_INCLUDE cuda.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH ${CMAKE_SOURCE_DIR}/.deps/cuda
  PATHS /usr/local/cuda /usr/local
  PATH_SUFFIXES include targets/x86_64-linux/include)
if(NOT GPUPOOL_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda.h not found: install a CUDA toolkit (12.5 or newer) or run scripts/fetch-cuda-headers")
endif()
add_library(gpupool_cuda_headers INTERFACE)
target_include_directories(gpupool_cuda_headers SYSTEM INTERFACE ${GPUPOOL_CUDA_INCLUDE})

# spdlog header-only, with fmt header-only: nothing of them may be linked into what is preloaded.
find_path(GPUPOOL_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
find_path(GPUPOOL_FMT_INCLUDE fmt/format.h)
add_library(gpupool_spdlog INTERFACE)
target_include_directories(gpupool_spdlog SYSTEM INTERFACE ${GPUPOOL_SPDLOG_INCLUDE})
if(GPUPOOL_FMT_INCLUDE)
  target_include_directories(gpupool_spdlog SYSTEM INTERFACE ${GPUPOOL_FMT_INCLUDE})
  target_compile_definitions(gpupool_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
endif()

find_path(GPUPOOL_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
add_library(gpupool_cli11 INTERFACE)
target_include_directories(gpupool_cli11 SYSTEM INTERFACE ${GPUPOOL_CLI11_INCLUDE})

find_path(GPUPOOL_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(GPUPOOL_ZSTD_LIBRARY NAMES libzstd.a zstd REQUIRED)
add_library(gpupool_zstd INTERFACE)
target_include_directories(gpupool_zstd SYSTEM INTERFACE ${GPUPOOL_ZSTD_INCLUDE})
target_link_libraries(gpupool_zstd INTERFACE ${GPUPOOL_ZSTD_LIBRARY})

if(GPUPOOL_TESTS)
  find_package(Catch2 REQUIRED)
endif()
