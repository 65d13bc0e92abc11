// `gpupool cdi`: the specification by which a container runtime brings the libraries into any image
// (https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md).
//
// A runtime sets the variables of a specification *instead of* the image's, LD_PRELOAD among them. So there are two
// devices: `all` sets the variable, to what the image has as well if that is known; `file` names the front in
// /etc/ld.so.preload, and leaves the variable alone. Nothing of the container is known here but what the caller says of
// it, or what the runtime says of its image.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "cli/libraries.h"
#include "cli/settings.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kVersion[] = "0.5.0";  // the oldest in use that has what is needed here
constexpr char kKind[] = "gpupool.dev/pool";
constexpr char kLibraries[] = "/opt/gpupool/lib";  // in the container; share/gpupool/ld.so.preload says the same
constexpr char kConfig[] = "/opt/gpupool/gpupool.json";
constexpr std::size_t kLargestImage = std::size_t{16} << 20;  // far more than image inspect prints of one

Json mount(const std::string& from, const std::string& to) {
  return {{"hostPath", from}, {"containerPath", to}, {"options", {"ro", "nosuid", "nodev", "bind"}}};
}

std::string front() { return std::string{kLibraries} + "/" + kFrontName; }

// What both devices do: the libraries, the configuration, the options. Faults of the configuration come back in
// `faults`.
Json edits(const Arguments& arguments, const std::string& folder, Diagnostics& faults) {
  Json variables = Json::array();
  Json mounts = Json::array({mount(folder, kLibraries)});
  for (const Setting& setting : settings_of("cdi", arguments)) {
    variables.push_back(environment_name(setting.key) + "=" + setting.value);
  }
  if (arguments.has("--config")) {
    const std::string file = arguments.value("--config");
    faults = loaded_from(file).diagnostics;
    mounts.push_back(mount(fs::absolute(file).string(), kConfig));
    variables.push_back(std::string{"GPUPOOL_CONFIG="} + kConfig);
  }
  return {{"env", variables}, {"mounts", mounts}};
}

// What an image sets LD_PRELOAD to, out of the list that `image inspect` prints.
std::string preload_in(const std::string& file) {
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  const Json images = Json::parse(read_input(file, kLargestImage), nullptr, false);
  if (!images.is_array() || images.size() != 1 || !images[0].is_object()) {
    throw Problem(Exit::input, escaped(file, file.size()) + ": is not what image inspect prints of one image");
  }
  const Json& image = images[0];
  if (!image.contains("Config") || !image["Config"].is_object() || !image["Config"].contains("Env")) return "";
  for (const Json& entry : image["Config"]["Env"]) {
    const std::string variable = entry.is_string() ? entry.get<std::string>() : "";
    if (variable.starts_with(kVariable)) return variable.substr(kVariable.size());
  }
  return "";
}

Json device(const char* name, Json of_both, const Json& variable, const Json& further_mount) {
  if (!variable.is_null()) of_both["env"].push_back(variable);
  if (!further_mount.is_null()) of_both["mounts"].push_back(further_mount);
  if (of_both["env"].empty()) of_both.erase("env");
  return {{"name", name}, {"containerEdits", std::move(of_both)}};
}

}  // namespace

Exit cdi_verb(const Arguments& arguments) {
  arguments.allow_one_of({"--preload", "--image"});
  const fs::path folder = fs::path{find_front(arguments.value("--library"))}.parent_path();
  const std::string of_image =
      arguments.has("--image") ? preload_in(arguments.value("--image")) : arguments.value("--preload");
  Diagnostics faults;
  const Json both = edits(arguments, folder.string(), faults);
  for (const Diagnostic& fault : faults) note(fault.message());
  Json devices = Json::array({device("all", both, "LD_PRELOAD=" + preload_list(front(), of_image), nullptr)});
  if (!preload_entries(of_image).empty()) {
    note("a runtime replaces the image's LD_PRELOAD=" + escaped(of_image, of_image.size()) +
         " by what the device sets; device all names both");
  }
  std::error_code error;
  const fs::path named = (fs::path{own_folder()} / "../share/gpupool/ld.so.preload").lexically_normal();
  if (fs::is_regular_file(named, error)) {
    devices.push_back(device("file", both, nullptr, mount(named.string(), "/etc/ld.so.preload")));
  }
  print(Json{{"cdiVersion", kVersion}, {"kind", kKind}, {"devices", devices}}.dump(2) + "\n");
  return faults.empty() ? Exit::ok : Exit::warning;
}

}  // namespace gpupool::cli
