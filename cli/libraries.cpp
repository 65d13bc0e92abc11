// See libraries.h.
#include "cli/libraries.h"

#include <algorithm>
#include <filesystem>

#include "cli/console.h"
#include "cli/elf.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kSeparators[] = " :";

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(a, b, ignored);
}

// Why `path` is no front that the loader would take here; empty when it is one.
std::string fault_of_front(const std::string& path) {
  const ElfFacts facts = elf_facts(path);
  if (!facts.is_elf) return "is no library";
  if (facts.other_machine) return "is for another processor or word size";
  const auto shows = [&](const char* name) { return std::ranges::find(facts.exports, name) != facts.exports.end(); };
  // The loader's own name beside one of the driver's: nobody else has both.
  if (facts.is_shared && shows("dlsym") && shows("cuGetProcAddress_v2")) return "";
  return "is not " + std::string{kFrontName} + ", whatever its name";
}

}  // namespace

std::string own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string{} : self.parent_path().string();
}

std::vector<std::string> library_places(const std::string& folder) {
  std::vector<std::string> places;
  for (const char* relative : {"../lib", "../lib/gpupool", "../lib64", "../lib64/gpupool", "."}) {
    places.push_back((fs::path{folder} / relative / kFrontName).lexically_normal().string());
  }
  return places;
}

std::string find_front(const std::string& wanted) {
  std::error_code error;
  const std::vector<std::string> places = wanted.empty() ? library_places(own_folder()) : std::vector{wanted};
  for (const std::string& place : places) {
    if (!fs::is_regular_file(place, error)) continue;
    const std::string found = fs::absolute(place, error).lexically_normal().string();
    if (found.find_first_of(kSeparators) != std::string::npos) {
      throw Problem(Exit::broken, escaped(found, found.size()) +
                                      ": LD_PRELOAD cannot hold a path with a blank or a colon; move it or link to it");
    }
    if (const std::string fault = fault_of_front(found); !fault.empty())
      throw Problem(Exit::input, escaped(found, found.size()) + " " + fault);
    return found;
  }
  std::string looked;
  for (const std::string& place : places) looked += (looked.empty() ? "" : ", ") + escaped(place, place.size());
  throw Problem(Exit::broken,
                std::string{kFrontName} + " is not at " + looked + (wanted.empty() ? "; name it with --library" : ""));
}

std::vector<std::string> preload_entries(const std::string& list) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; (begin = list.find_first_not_of(kSeparators, begin)) != std::string::npos;) {
    const std::size_t end = list.find_first_of(kSeparators, begin);
    entries.push_back(list.substr(begin, end - begin));
    begin = end;
    if (end == std::string::npos) break;
  }
  return entries;
}

std::string preload_list(const std::string& front, const std::string& present) {
  const std::vector<std::string> entries = preload_entries(present);
  for (const std::string& entry : entries) {
    if (same_file(entry, front)) return present;
  }
  return entries.empty() ? front : front + ":" + present;
}

}  // namespace gpupool::cli
