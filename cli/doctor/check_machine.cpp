// See finding.h: the cards with the room on them, and the limits that a container or a shell sets.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/cards.h"
#include "cli/doctor/finding.h"
#include "cli/folder.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kLittleHostMemory = 1_GiB;

std::string users_text(const Card& card) {
  std::string text;
  for (const CardUser& user : card.users) {
    text += (text.empty() ? "process " : ", process ") + std::to_string(user.pid);
    if (user.bytes != 0) text += " with " + readable(user.bytes);
  }
  return text;
}

void check_room(Findings& findings, const Card& card, const PoolOptions& options) {
  const Bytes free = card.total - std::min(card.total, card.used);
  const std::string what = "card " + std::to_string(card.index);
  const Resolution on_empty = resolve(options, card.total, card.total);
  const Bytes wanted = on_empty.pool.size;
  findings.push_back({Level::ok, what,
                      card.name + " (" + card.uuid + "), " + readable(free) + " of " + readable(card.total) + " free",
                      ""});
  if (!card.users.empty()) findings.push_back({Level::note, what, "is used by " + users_text(card), ""});
  if (wanted + on_empty.pool.headroom > free) {
    findings.push_back({Level::warning, what,
                        "pool.size (" + readable(wanted) + ") and pool.headroom (" + readable(on_empty.pool.headroom) +
                            ") are more than is free: the pool begins with less",
                        "end what else uses the card, lower pool.size, or set pool.strategy=auto_growth"});
  }
}

}  // namespace

void check_cards(Findings& findings) {
  const std::vector<Card> cards = cards_seen();
  if (cards.empty()) {
    findings.push_back({Level::note, "cards",
                        "not looked at: libnvidia-ml.so.1 is not here, or sees no card; room and other processes are "
                        "not known",
                        ""});
    return;
  }
  findings.push_back({Level::ok, "driver", "release " + driver_release(), ""});
  const PoolOptions options = load(environ).options.pool;
  for (const Card& card : cards) check_room(findings, card, options);
}

Bytes control_group_limit(const std::string& groups, const std::string& mount) {
  constexpr Bytes kNoLimit = Bytes{1} << 60;  // version 1 writes a number near 2^63
  Bytes least = kNoLimit;
  const auto look = [&](const fs::path& file) {
    std::uint64_t value = 0;
    if (std::ifstream in(file); in >> value) least = std::min(least, value);  // "max" is no number
  };
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_v1 = controllers.find(",memory,") != std::string::npos;
    if (!is_v1 && controllers != ",,") continue;
    // A container sees its own group at the mount, whatever the path says; elsewhere each group above counts, too.
    for (fs::path group = fs::path{line.substr(second + 1)}.relative_path();; group = group.parent_path()) {
      look(is_v1 ? mount / fs::path{"memory"} / group / "memory.limit_in_bytes" : mount / group / "memory.max");
      if (group.empty()) break;
    }
  }
  return least == kNoLimit ? 0 : least;
}

void check_limits(Findings& findings) {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
    findings.push_back({Level::warning, "limits",
                        "a process may have " + readable(addresses.rlim_cur) +
                            " of addresses; a pool reserves several times the memory of its card",
                        "ulimit -v unlimited"});
  }
  std::error_code error;
  const bool contained = fs::exists("/.dockerenv", error) || fs::exists("/run/.containerenv", error) ||
                         std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  if (contained)
    findings.push_back({Level::note, "limits", "in a container: paths and limits are those of the container", ""});
  const Bytes most = control_group_limit(read_small_file("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (most == 0) return;
  const Level level = most < kLittleHostMemory ? Level::warning : Level::note;
  findings.push_back({level, "limits", "the control group allows " + readable(most) + " of host memory",
                      level == Level::warning ? "allow more: the CUDA driver itself needs hundreds of MiB" : ""});
}

}  // namespace gpupool::cli
