// The driver, CUPTI, counters, NVML.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>

#include "collector/doctor/finding.h"
#include "collector/file/file_descriptor.h"
#include "proto/cupti_trial.h"
#include "proto/environment.h"

namespace ranktap::collector {
namespace {

// The first number with dots in the line: "NVRM version: ... Kernel Module  550.54.14  ...".
std::string DriverVersion(const HostView& host) {
  std::istringstream words(host.Read("/proc/driver/nvidia/version").value_or(""));
  for (std::string word; words >> word;) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return {};
}

int Major(const std::string& version) {
  int major = 0;
  (void)std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

// CUDA's major version, by the driver's branch: what NVIDIA's release notes pair with it.
int CudaMajorOf(int driver_major) {
  return driver_major >= 580 ? 13 : driver_major >= 525 ? 12 : driver_major >= 450 ? 11 : 0;
}

// cuptiGetVersion's number: 18 is 11.8, 19 to 99 are 12's, from 13 on it is the version itself.
std::string CuptiVersionName(uint32_t version) {
  if (version >= 100000) {
    return fmt::format("{}.{}", version / 10000, version / 100 % 100);
  }
  if (version == 18) return "11.8";
  return version > 18 ? fmt::format("12 (API {})", version)
                      : fmt::format("before 11.8 (API {})", version);
}
int CuptiMajor(uint32_t version) {
  return version >= 100000 ? static_cast<int>(version / 10000) : version > 18 ? 12 : 11;
}

struct CuptiAnswer {
  uint32_t version = 0;
  bool is_deadly = false;  // proto/cupti_trial.h: told by its exports, and not called
};

CuptiAnswer AnswerOf(void* library) {
  constexpr uint32_t kDeadlyVersion = 130200;
  CuptiAnswer answer;
  answer.is_deadly =
      proto::IsDeadlyCupti([&](const char* name) { return ::dlsym(library, name) != nullptr; });
  if (answer.is_deadly) {
    answer.version = kDeadlyVersion;
    return answer;
  }
  using GetVersion = int (*)(uint32_t*);
  auto* const get = reinterpret_cast<GetVersion>(::dlsym(library, "cuptiGetVersion"));
  if (get == nullptr || get(&answer.version) != 0) answer.version = 0;
  return answer;
}

// In a child: somebody else's library may do anything when it is opened.
std::optional<CuptiAnswer> AskCupti(const std::string& path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const CuptiAnswer answer = library == nullptr ? CuptiAnswer{} : AnswerOf(library);
    if (answer.version != 0) (void)!::write(write.get(), &answer, sizeof(answer));
    ::_exit(0);
  }
  write.Reset();
  if (child < 0) return std::nullopt;
  constexpr int kPatienceMs = 5000;
  pollfd polled{.fd = read.get(), .events = POLLIN, .revents = 0};
  CuptiAnswer answer;
  const bool answered = ::poll(&polled, 1, kPatienceMs) == 1 &&
                        ::read(read.get(), &answer, sizeof(answer)) == sizeof(answer);
  if (!answered) (void)::kill(child, SIGKILL);
  (void)::waitpid(child, nullptr, 0);
  return answered ? std::optional(answer) : std::nullopt;
}

void AddDirectory(const HostView& host, const std::string& directory,
                  std::set<std::string>* found) {
  for (const std::string& name : host.List(directory)) {
    if (!name.starts_with("libcupti.so")) continue;
    std::error_code error;
    const auto file =
        std::filesystem::canonical(fmt::format("{}/{}", host.Path(directory), name), error);
    if (!error) found->insert(file.string());
  }
}

// The places where the agent looks, and those of Python's wheels. Nobody knows before a program
// runs which one it brings along.
std::vector<std::string> FindCuptiCopies(const HostView& host) {
  std::set<std::string> found;
  for (const std::string& name : host.List("/usr/local")) {
    if (!name.starts_with("cuda")) continue;
    AddDirectory(host, fmt::format("/usr/local/{}/extras/CUPTI/lib64", name), &found);
    AddDirectory(host, fmt::format("/usr/local/{}/lib64", name), &found);
  }
  AddDirectory(host, "/usr/lib/x86_64-linux-gnu", &found);
  std::istringstream paths(host.Variable("LD_LIBRARY_PATH").value_or(""));
  for (std::string path; std::getline(paths, path, ':');) {
    if (!path.empty()) AddDirectory(host, path, &found);
  }
  const std::string environment = host.Variable("VIRTUAL_ENV").value_or("/usr/local");
  for (const std::string& prefix : {environment, host.Variable("CONDA_PREFIX").value_or("")}) {
    if (prefix.empty()) continue;
    for (const std::string& python : host.List(prefix + "/lib")) {
      if (!python.starts_with("python")) continue;
      const std::string nvidia = fmt::format("{}/lib/{}/site-packages/nvidia", prefix, python);
      for (const std::string& package : host.List(nvidia)) {
        AddDirectory(host, fmt::format("{}/{}/lib", nvidia, package), &found);
      }
    }
  }
  return {found.begin(), found.end()};
}

std::vector<Finding> CheckDevices(const HostView& host) {
  int devices = 0;
  for (const std::string& name : host.List("/dev")) {
    if (!name.starts_with("nvidia") || name.size() == 6 ||
        name.find_first_not_of("0123456789", 6) != std::string::npos) {
      continue;
    }
    ++devices;
    const std::string path = "/dev/" + name;
    if (host.Access(path, R_OK | W_OK) != 0) {
      return {{Severity::kProblem, fmt::format("{} cannot be opened by this user", path),
               fmt::format("join the group that owns it (ls -l {}), or ask who runs the machine",
                           path)}};
    }
  }
  if (devices > 0) {
    return {{Severity::kOk, fmt::format("{} device{}", devices, devices == 1 ? "" : "s"), ""}};
  }
  return {{Severity::kProblem, "the driver is loaded, and /dev has no nvidia0 here",
           "give the container its GPUs (docker run --gpus all; Slurm: --gres=gpu)"}};
}

// What the agent lets CUPTI take, if nobody has said otherwise: the environment's table knows.
Finding DeviceMemoryOfCupti(const HostView& host) {
  constexpr double kMegabytesOfBuffer = 3.2;
  constexpr std::string_view kName = "RANKTAP_DEVICE_BUFFERS";
  const auto* const row = std::ranges::find(proto::kEnvVars, kName, &proto::EnvVar::name);
  const std::string said =
      host.Variable(std::string(kName)).value_or(std::string(row->default_value));
  const int buffers = std::atoi(said.c_str());
  return {Severity::kOk,
          fmt::format("CUPTI may take {} buffers of a GPU's memory in each context, {:.0f} MB ({})",
                      buffers, buffers * kMegabytesOfBuffer, kName),
          ""};
}

}  // namespace

std::vector<Finding> CheckDriver(const HostView& host) {
  const std::string version = DriverVersion(host);
  if (version.empty()) {
    return {{Severity::kProblem,
             "no NVIDIA driver is loaded (/proc/driver/nvidia/version is not there): no kernel "
             "can be traced here, only NVTX ranges and PyTorch on the CPU",
             "run on a machine with a GPU; `ranktap run --level full` records PyTorch on the CPU; "
             "traces can be read anywhere"}};
  }
  std::vector<Finding> findings = {{Severity::kOk, fmt::format("NVIDIA driver {}", version), ""}};
  if (CudaMajorOf(Major(version)) == 0) {
    findings[0] = {
        Severity::kWarning,
        fmt::format("NVIDIA driver {} is older than CUDA 11.8, the first that ranktap knows",
                    version),
        "use driver 520 or newer"};
  }
  for (Finding& finding : CheckDevices(host)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> CheckCupti(const HostView& host) {
  std::vector<Finding> findings;
  const int driver = CudaMajorOf(Major(DriverVersion(host)));
  std::vector<std::string> copies = FindCuptiCopies(host);
  if (const auto named = host.Variable("RANKTAP_CUPTI")) {
    if (!host.Exists(*named)) {
      findings.push_back({Severity::kProblem,
                          fmt::format("RANKTAP_CUPTI names {}, which is not there", *named),
                          "unset it, or name a libcupti.so"});
    } else if (std::find(copies.begin(), copies.end(), host.Path(*named)) == copies.end()) {
      copies.push_back(host.Path(*named));
    }
  }
  for (const std::string& path : copies) {
    const auto answer = AskCupti(path);
    const uint32_t version = answer ? answer->version : 0;
    if (!answer) {
      findings.push_back(
          {Severity::kWarning,
           fmt::format("{} cannot be loaded, or does not say which version it is", path),
           "remove it, or name another with RANKTAP_CUPTI"});
    } else if (version < 18) {
      findings.push_back({Severity::kWarning,
                          fmt::format("{}: CUPTI {}, which ranktap does not know", path,
                                      CuptiVersionName(version)),
                          "install CUPTI 11.8 or newer"});
    } else if (driver != 0 && CuptiMajor(version) > driver) {
      findings.push_back(
          {Severity::kWarning,
           fmt::format("{}: CUPTI {} is newer than the driver, which ends with CUDA {}", path,
                       CuptiVersionName(version), driver),
           fmt::format("use a CUPTI of CUDA {} (RANKTAP_CUPTI), or a newer driver", driver)});
    } else if (answer->is_deadly) {
      findings.push_back(
          {Severity::kNote,
           fmt::format("{}: CUPTI {} ends a program where it does not start: a collector tries it "
                       "in another process before it is used",
                       path, CuptiVersionName(version)),
           "a CUPTI of another version is used at once (RANKTAP_CUPTI)"});
    } else {
      findings.push_back(
          {Severity::kOk, fmt::format("{}: CUPTI {}", path, CuptiVersionName(version)), ""});
    }
  }
  if (findings.empty()) {
    findings.push_back({Severity::kWarning,
                        "no libcupti in the usual places; the agent takes the copy that the "
                        "program has loaded (PyTorch brings one), and without any there are no "
                        "kernels",
                        "install CUPTI, or set RANKTAP_CUPTI to its path"});
  }
  findings.push_back(DeviceMemoryOfCupti(host));
  return findings;
}

std::vector<Finding> CheckCounterPermission(const HostView& host) {
  const auto params = host.Read("/proc/driver/nvidia/params");
  if (!params) return {{Severity::kNote, "not known: /proc/driver/nvidia/params is not there", ""}};
  const std::string restricted = HostView::Field(*params, "RmProfilingAdminOnly").value_or("0");
  if (restricted == "0" || host.user() == 0) {
    return {{Severity::kOk, "hardware counters are open to this user", ""}};
  }
  return {{Severity::kNote,
           "hardware counters are for administrators (RmProfilingAdminOnly: 1); kernels, copies "
           "and ranges need no such permission",
           "for counters: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, "
           "then reload the driver"}};
}

std::vector<Finding> CheckNvml(const HostView& host) {
  const int failed = host.Probe("nvml", [] {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? ENOENT : 0;
  });
  if (failed == 0) return {{Severity::kOk, "libnvidia-ml.so.1 can be loaded", ""}};
  return {{Severity::kNote,
           "libnvidia-ml.so.1 cannot be loaded: no clocks, power or temperature in the runs",
           "in a container add the utility capability (NVIDIA_DRIVER_CAPABILITIES=all)"}};
}

}  // namespace ranktap::collector
