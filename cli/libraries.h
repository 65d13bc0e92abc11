// Where libgpupool.so and its core lie: beside this command in a build folder, an installation or an unpacked archive.
// Looks at files only; loads nothing.
#pragma once
#include <string>
#include <vector>

namespace gpupool::cli {

inline constexpr char kFrontName[] = "libgpupool.so";
inline constexpr char kCoreName[] = "libgpupool_core.so";

/// Absolute path of this command's folder.
std::string own_folder();

/// The places to look at, best first.
std::vector<std::string> library_places(const std::string& folder);

/// Absolute path of the front: `wanted` if not empty, else the first place that has it. A Problem names what was looked
/// at, and a file there that is no front.
std::string find_front(const std::string& wanted);

/// LD_PRELOAD with `front` first. What is there stays; a front that is there already, by whatever path, is not added
/// again.
std::string preload_list(const std::string& front, const std::string& present);

/// The entries of an LD_PRELOAD, which blanks and colons separate.
std::vector<std::string> preload_entries(const std::string& list);

}  // namespace gpupool::cli
