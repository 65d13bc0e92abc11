// Runs a program with a chosen environment and collects what it said. With GPUPOOL_TEST_EMULATOR the programs of the
// folder GPUPOOL_TEST_PROGRAMS are of another architecture and run under that emulator; the preload is then set for the
// program alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

struct Said {
  int status;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

using Words = std::vector<std::string>;
using Settings = std::vector<std::pair<std::string, std::string>>;

bool emulated();
std::string programs();

// A program of this machine. LD_PRELOAD and GPUPOOL_* of the test itself do not reach it.
Said run(const Words& words, const Settings& settings = {}, const std::string& folder = ".");
// A program of the folder of test programs, with the small driver where dlopen finds it.
Said run_probe(const Words& words, const std::string& preload, Settings settings = {}, const std::string& folder = ".");
