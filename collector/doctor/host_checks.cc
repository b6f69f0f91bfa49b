// The kernel, what it lets this user do, and this shell's limits.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

#include "collector/doctor/finding.h"

namespace ranktap::collector {
namespace {

int TryMemfd() {
  constexpr unsigned kAllowSealing = 2, kCloexec = 1;
  const auto fd =
      static_cast<int>(::syscall(SYS_memfd_create, "ranktap", kAllowSealing | kCloexec));
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

int TryPidfd() {
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

int TryWipeOnFork() {
  const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const page =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  const int failed = ::madvise(page, bytes, MADV_WIPEONFORK) == 0 ? 0 : errno;
  ::munmap(page, bytes);
  return failed;
}

std::string Why(int error) { return fmt::format(" ({})", std::strerror(error)); }

std::optional<long> Number(const std::optional<std::string>& text) {
  long value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// The soft limit of a line of /proc/self/limits; nullopt: unlimited, or not there.
std::optional<long> SoftLimit(const std::string& limits, const std::string& name) {
  std::istringstream lines(limits);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream rest(line.substr(name.size()));
    std::string soft;
    rest >> soft;
    return Number(soft);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Finding> CheckKernel(const HostView& host) {
  std::vector<Finding> findings;
  const std::string release = host.Read("/proc/sys/kernel/osrelease").value_or("");
  if (const int error = host.Probe("memfd", TryMemfd)) {
    findings.push_back(
        {Severity::kProblem,
         fmt::format("memfd_create is refused{}: the agent has no rings, and stays off",
                     Why(error)),
         "allow memfd_create in the container's seccomp profile"});
  }
  if (const int error = host.Probe("wipeonfork", TryWipeOnFork)) {
    findings.push_back({Severity::kProblem,
                        fmt::format("MADV_WIPEONFORK is refused{}: the agent stays off, since it "
                                    "could not tell a fork child",
                                    Why(error)),
                        "use Linux 4.14 or newer"});
  }
  if (const int error = host.Probe("pidfd", TryPidfd)) {
    findings.push_back({Severity::kWarning,
                        fmt::format("pidfd_open is refused{}: the death of a rank is noticed by "
                                    "its socket only, and later where a child holds that open",
                                    Why(error)),
                        "use Linux 5.3 or newer, or allow pidfd_open in the seccomp profile"});
  }
  const auto status = host.Read("/proc/self/status");
  if (status && HostView::Field(*status, "Seccomp").value_or("0") == "2") {
    findings.push_back({Severity::kNote,
                        "a seccomp filter is in force; what ranktap needs was tried just now, but "
                        "the job may run under another",
                        ""});
  }
  if (findings.empty()) {
    const std::string name = release.substr(0, release.find('\n'));
    findings.push_back({Severity::kOk, fmt::format("Linux {} has all that is needed", name), ""});
  }
  return findings;
}

std::vector<Finding> CheckPtrace(const HostView& host) {
  const auto scope = Number(host.Read("/proc/sys/kernel/yama/ptrace_scope"));
  if (!scope || *scope == 0) {
    return {{Severity::kOk, "processes of this user may be traced by it", ""}};
  }
  const std::string what = fmt::format("ptrace_scope is {}", *scope);
  if (*scope >= 3) {
    return {
        {Severity::kNote,
         fmt::format(
             "{}: nobody may look into a running process; run, collect and start do not need it",
             what),
         ""}};
  }
  if (host.user() == 0) {
    return {{Severity::kOk, fmt::format("{}, which does not bind root", what), ""}};
  }
  return {{Severity::kNote,
           fmt::format("{}: debuggers must be the parent of a process or root; run, collect and "
                       "start do not need it",
                       what),
           "for debuggers beside ranktap: sysctl kernel.yama.ptrace_scope=0"}};
}

std::vector<Finding> CheckPerf(const HostView& host) {
  const auto paranoid = Number(host.Read("/proc/sys/kernel/perf_event_paranoid"));
  if (!paranoid) return {{Severity::kNote, "this kernel has no perf events", ""}};
  const std::string what = fmt::format("perf_event_paranoid is {}", *paranoid);
  if (*paranoid <= 2 || host.user() == 0) return {{Severity::kOk, what, ""}};
  return {{Severity::kNote,
           fmt::format("{}: perf and nsys cannot sample; ranktap's stacks do not need perf", what),
           ""}};
}

std::vector<Finding> CheckLimits(const HostView& host) {
  const std::string limits = host.Read("/proc/self/limits").value_or("");
  std::vector<Finding> findings;
  // The agent moves its descriptors to 512 and above; the collector has three for each rank.
  constexpr long kFiles = 1024;
  if (const auto files = SoftLimit(limits, "Max open files"); files && *files < kFiles) {
    findings.push_back({Severity::kWarning,
                        fmt::format("at most {} open files: the agent wants numbers from 512 on, "
                                    "the collector three for each rank",
                                    *files),
                        "ulimit -n 4096"});
  }
  if (const auto bytes = SoftLimit(limits, "Max file size")) {
    findings.push_back({Severity::kWarning,
                        fmt::format("files may have at most {} bytes: what is over that of a trace "
                                    "is lost, and declared lost",
                                    *bytes),
                        "ulimit -f unlimited"});
  }
  constexpr long kAddressSpace = 1L << 30;
  if (const auto bytes = SoftLimit(limits, "Max address space"); bytes && *bytes < kAddressSpace) {
    findings.push_back(
        {Severity::kWarning,
         fmt::format(
             "the address space is limited to {} MiB; the agent takes up to 64 MiB of a process's",
             *bytes >> 20),
         "ulimit -v unlimited"});
  }
  if (findings.empty()) findings.push_back({Severity::kOk, "nothing is in the way", ""});
  return findings;
}

}  // namespace ranktap::collector
