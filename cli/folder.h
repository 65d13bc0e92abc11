// A temporary folder of one verb, for what its children write; removed with all in it when the verb is done.
#pragma once
#include <filesystem>
#include <string>

namespace gpupool::cli {

class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Its text; empty where it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace gpupool::cli
