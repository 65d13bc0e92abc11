// See finding.h: the cards with the room on them, and the limits that a container or a shell sets.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/cards.h"
#include "cli/doctor/finding.h"
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
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::uint64_t most = 0;
  if (!(file >> most)) return;  // "max", or no such group
  const Level level = most < kLittleHostMemory ? Level::warning : Level::note;
  findings.push_back({level, "limits", "the control group allows " + readable(most) + " of host memory",
                      level == Level::warning ? "allow more: the CUDA driver itself needs hundreds of MiB" : ""});
}

}  // namespace gpupool::cli
