// Finding and opening libcupti.
// Runs on: the thread inside cuInit, the drain thread.  May not: open a second copy.
#include "agent/sources/cupti/cupti_api.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "proto/cupti_trial.h"

namespace ranktap::agent::cupti {
namespace {

// Newest first; CUPTI's soname lost its minor version with 12.0.
constexpr std::array<const char*, 5> kSonames = {
    "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6"};

// Paths of what is mapped and has `part` in its file name.
std::vector<std::string> MappedLibraries(std::string_view part) {
  struct Search {
    std::string_view part;
    std::vector<std::string> found;
  } search{part, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name;
        if (path.substr(path.rfind('/') + 1).starts_with(wanted->part)) {
          wanted->found.emplace_back(path);
        }
        return 0;
      },
      &search);
  return search.found;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The places of libcupti relative to a directory of the toolkit or of NVIDIA's wheels.
std::vector<std::string> Candidates() {
  std::vector<std::string> directories;
  for (const std::string& cudart : MappedLibraries("libcudart.so")) {
    const std::string directory = DirectoryOf(cudart);
    directories.push_back(directory);
    directories.push_back(directory + "/../../cuda_cupti/lib");
    directories.push_back(directory + "/../extras/CUPTI/lib64");
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      directories.push_back(std::string(home) + "/extras/CUPTI/lib64");
      directories.push_back(std::string(home) + "/lib64");
    }
  }
  std::vector<std::string> candidates;
  for (const std::string& directory : directories) {
    for (const char* soname : kSonames) candidates.push_back(directory + "/" + soname);
  }
  // Then wherever the loader looks, then the usual place.
  for (const char* soname : kSonames) candidates.emplace_back(soname);
  for (const char* directory : {"/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/"}) {
    for (const char* soname : kSonames) candidates.push_back(std::string(directory) + soname);
  }
  return candidates;
}

void* OpenMapped() {
  for (const std::string& path : MappedLibraries("libcupti.so")) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) return handle;
  }
  return nullptr;
}

void* OpenNew(const std::string& preferred) {
  if (!preferred.empty()) return dlopen(preferred.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const std::string& path : Candidates()) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

template <typename Function>
bool Find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

// The name of the first function that is missing, or nullptr.
const char* FindAll(void* handle, Api& api) {
#define RANKTAP_NEED(function) \
  if (!Find(handle, "cupti" #function, api.function)) return "cupti" #function
  RANKTAP_NEED(GetVersion);
  RANKTAP_NEED(Subscribe);
  RANKTAP_NEED(Unsubscribe);
  RANKTAP_NEED(EnableCallback);
  RANKTAP_NEED(GetCallbackName);
  RANKTAP_NEED(ActivityRegisterCallbacks);
  RANKTAP_NEED(ActivityEnable);
  RANKTAP_NEED(ActivityDisable);
  RANKTAP_NEED(ActivityFlushAll);
  RANKTAP_NEED(ActivityGetNextRecord);
  RANKTAP_NEED(ActivityGetNumDroppedRecords);
  RANKTAP_NEED(ActivitySetAttribute);
  RANKTAP_NEED(ActivityGetAttribute);
  RANKTAP_NEED(GetContextId);
  RANKTAP_NEED(GetDeviceId);
  RANKTAP_NEED(GetStreamIdEx);
#undef RANKTAP_NEED
  Find(handle, "cuptiActivityEnableAndDump", api.ActivityEnableAndDump);
  Find(handle, "cuptiSetThreadIdType", api.SetThreadIdType);
  Find(handle, "cuptiGetThreadIdType", api.GetThreadIdType);
  Find(handle, "cuptiGetGraphId", api.GetGraphId);
  Find(handle, "cuptiGetGraphNodeId", api.GetGraphNodeId);
  Find(handle, "cuptiGetGraphExecId", api.GetGraphExecId);
  Find(handle, "cuptiActivityEnableRuntimeApi", api.ActivityEnableRuntimeApi);
  Find(handle, "cuptiActivityEnableDriverApi", api.ActivityEnableDriverApi);
  Find(handle, "cuptiActivityEnableHWTrace", api.ActivityEnableHWTrace);
  return nullptr;
}

std::string PathOf(const void* symbol) {
  Dl_info info;
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// 13.3 and later do not say their version before the driver is up. The first of a major version is
// the prefix that all of them have.
uint32_t VersionBySoname(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.starts_with("libcupti.so.13")) return kVersion130;
  if (file.starts_with("libcupti.so.12")) return kVersion120;
  return file.starts_with("libcupti.so.11") ? kVersion118 : 0;
}

void* Driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

template <typename Function>
Function* DriverFunction(const char* name) {
  return Driver() == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(Driver(), name));
}

}  // namespace

LoadedApi LoadApi(const std::string& preferred) {
  LoadedApi loaded;
  void* handle = OpenMapped();
  loaded.was_mapped = handle != nullptr;
  if (handle == nullptr) handle = OpenNew(preferred);
  if (handle == nullptr) {
    loaded.failure = preferred.empty()
                         ? "no libcupti found beside the CUDA runtime or in the usual places; set "
                           "RANKTAP_CUPTI to its path"
                         : preferred + " (RANKTAP_CUPTI) cannot be opened";
    return loaded;
  }
  if (const char* missing = FindAll(handle, loaded.api)) {
    loaded.failure = std::string("libcupti has no ") + missing;
    return loaded;
  }
  loaded.path = PathOf(reinterpret_cast<const void*>(loaded.api.GetVersion));
  loaded.deadly =
      proto::IsDeadlyCupti([&](const char* name) { return dlsym(handle, name) != nullptr; });
  if (loaded.deadly) {
    loaded.version = kVersion132;
    loaded.version_is_guess = true;
    return loaded;
  }
  if (loaded.api.GetVersion(&loaded.version) != kSuccess) {
    loaded.version = VersionBySoname(loaded.path);
    loaded.version_is_guess = true;
  }
  if (loaded.version < kVersion118 || loaded.version >= kFirstUnknownVersion) {
    loaded.failure = "libcupti has version " + std::to_string(loaded.version) +
                     ", which this ranktap does not know (" + loaded.path + ")";
  }
  return loaded;
}

bool AskVersionAgain(LoadedApi& loaded, CallbackFunction callback) {
  Subscriber subscriber = nullptr;
  if (loaded.api.Subscribe(&subscriber, callback, nullptr) != kSuccess) return false;
  uint32_t version = 0;
  const bool is_known = loaded.api.GetVersion(&version) == kSuccess && version >= kVersion118 &&
                        version < kFirstUnknownVersion;
  (void)loaded.api.Unsubscribe(subscriber);
  if (is_known) loaded.version = version;
  loaded.version_is_guess = !is_known;
  return true;
}

DriverFacts ReadDriverFacts() {
  DriverFacts facts;
  if (auto* version = DriverFunction<int(int*)>("cuDriverGetVersion")) {
    version(&facts.version);
    facts.path = PathOf(reinterpret_cast<const void*>(version));
  }
  facts.simulated = DriverFunction<void()>("ranktap_standin_marker") != nullptr;
  return facts;
}

uint64_t DeviceAttribute(uint32_t device, int attribute) {
  auto* get = DriverFunction<int(int*, int, int)>("cuDeviceGetAttribute");
  int value = 0;
  if (get == nullptr || get(&value, attribute, static_cast<int>(device)) != 0) return 0;
  return static_cast<uint64_t>(value);
}

std::string DevicePciBus(uint32_t device) {
  auto* get = DriverFunction<int(char*, int, int)>("cuDeviceGetPCIBusId");
  std::array<char, 32> text{};
  if (get == nullptr || get(text.data(), text.size() - 1, static_cast<int>(device)) != 0) return {};
  return text.data();
}

}  // namespace ranktap::agent::cupti
