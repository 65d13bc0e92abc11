// See cards.h. The few functions of libnvidia-ml that are needed, as NVIDIA documents them; their shapes have not
// changed since the versions that their names carry.
#include "cli/cards.h"

#include <dlfcn.h>

namespace gpupool::cli {
namespace {

using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

constexpr int kDone = 0;
constexpr unsigned kLongestText = 96;
constexpr unsigned kMostUsers = 1024;

class Library {
 public:
  static const Library& get() {
    static const Library library;
    return library;
  }
  bool works() const { return works_; }

  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*users)(Device, unsigned*, Process*) = nullptr;
  int (*release)(char*, unsigned) = nullptr;

 private:
  Library() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    int (*begin)() = nullptr;
    works_ = find(library, begin, "nvmlInit_v2") && find(library, count, "nvmlDeviceGetCount_v2") &&
             find(library, device, "nvmlDeviceGetHandleByIndex_v2") && find(library, name, "nvmlDeviceGetName") &&
             find(library, uuid, "nvmlDeviceGetUUID") && find(library, memory, "nvmlDeviceGetMemoryInfo") &&
             begin() == kDone;
    find(library, users, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(library, release, "nvmlSystemGetDriverVersion");
  }

  template <class Function>
  static bool find(void* library, Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
  }

  bool works_ = false;
};

std::vector<CardUser> users_of(const Library& library, Device device) {
  std::vector<CardUser> out;
  if (library.users == nullptr) return out;
  std::vector<Process> found(kMostUsers);
  unsigned number = kMostUsers;
  if (library.users(device, &number, found.data()) != kDone) return out;
  constexpr unsigned long long kUnknown = ~0ULL;
  for (unsigned i = 0; i < number; ++i) out.push_back({found[i].pid, found[i].used == kUnknown ? 0 : found[i].used});
  return out;
}

}  // namespace

std::vector<Card> cards_seen() {
  std::vector<Card> out;
  const Library& library = Library::get();
  unsigned number = 0;
  if (!library.works() || library.count(&number) != kDone) return out;
  for (unsigned i = 0; i < number; ++i) {
    Device device = nullptr;
    Memory memory{};
    if (library.device(i, &device) != kDone || library.memory(device, &memory) != kDone) continue;
    char name[kLongestText] = "";
    char uuid[kLongestText] = "";
    library.name(device, name, kLongestText);
    library.uuid(device, uuid, kLongestText);
    out.push_back({i, name, uuid, memory.total, memory.used, users_of(library, device)});
  }
  return out;
}

std::string driver_release() {
  const Library& library = Library::get();
  char text[kLongestText] = "";
  if (library.works() && library.release != nullptr) library.release(text, kLongestText);
  return text;
}

}  // namespace gpupool::cli
