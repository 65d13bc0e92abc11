# Everything that is found, not built: CUDA's headers (never its libraries), spdlog and fmt as headers, nlohmann/json, CLI11, zstd, Catch2.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)

# CUDA headers: an installed toolkit, or what scripts/fetch-cuda-headers put into .deps/cuda. The script knows where to look and
# which version will do; -DGPUPOOL_CUDA_INCLUDE=folder overrides it.
set(GPUPOOL_CUDA_INCLUDE "" CACHE PATH "Folder of cuda.h; empty: what scripts/fetch-cuda-headers finds")
set(gpupool_cuda_include "${GPUPOOL_CUDA_INCLUDE}")
if(NOT gpupool_cuda_include)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/fetch-cuda-headers --find
    OUTPUT_VARIABLE gpupool_cuda_include OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT gpupool_cuda_include)
  message(FATAL_ERROR "cuda.h not found: install a CUDA toolkit (12.5 or newer) or run scripts/fetch-cuda-headers")
endif()
add_library(gpupool_cuda_headers INTERFACE)
target_include_directories(gpupool_cuda_headers SYSTEM INTERFACE ${gpupool_cuda_include})

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
