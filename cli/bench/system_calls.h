// Counts the system calls of a stretch of code: it runs once more in a child process that is traced from mark to mark.
// Linux only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace gpupool::bench {

/// A mark that the tracer sees; to be called by `work`, once where counting begins and once where it ends.
void mark_system_calls();

/// Number of calls between the two marks; nothing where tracing is not permitted.
std::optional<std::uint64_t> count_system_calls(const std::function<void()>& work);

}  // namespace gpupool::bench
