// Checks of the places of our own files and sockets.
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "collector/doctor/finding.h"
#include "collector/ingest/net/public_socket.h"
#include "proto/spool.h"

namespace ranktap::collector {
namespace {

std::string Octal(unsigned mode) { return fmt::format("{:04o}", mode & 07777); }

}  // namespace

std::vector<Finding> CheckAgent(const HostView& host) {
  if (host.agent_library.empty()) {
    return {{Severity::kProblem, host.agent_problem, "copy bin/ and lib/ of a build together"}};
  }
  std::vector<Finding> findings;
  const int no_exec = host.Probe("noexec", [&] {
    struct statvfs info {};
    if (::statvfs(host.agent_library.c_str(), &info) != 0) return 0;
    return (info.f_flag & ST_NOEXEC) != 0 ? EACCES : 0;
  });
  if (no_exec != 0) {
    findings.push_back(
        {Severity::kProblem,
         fmt::format("{} lies on a file system that is mounted noexec: no program can load it",
                     host.agent_library),
         "install ranktap elsewhere"});
  }
  if (host.agent_library.find_first_of(": ") != std::string::npos) {
    findings.push_back({Severity::kWarning,
                        fmt::format("{} has a colon or a space in its path: it cannot be "
                                    "preloaded, only injected by CUDA and NVTX",
                                    host.agent_library),
                        "install ranktap elsewhere"});
  }
  struct stat status {};
  if (::stat(host.agent_library.c_str(), &status) == 0 && (status.st_mode & S_IROTH) == 0) {
    findings.push_back({Severity::kNote,
                        fmt::format("{} is not readable for other users", host.agent_library), ""});
  }
  if (findings.empty()) findings.push_back({Severity::kOk, host.agent_library, ""});
  return findings;
}

std::vector<Finding> CheckSocket(const HostView& host) {
  std::vector<Finding> findings;
  if (const auto named = host.Variable("RANKTAP_SOCKET")) {
    const std::filesystem::path path = *named;
    if (named->size() >= sizeof(sockaddr_un::sun_path)) {
      findings.push_back({Severity::kProblem,
                          "RANKTAP_SOCKET is longer than a socket's path can be (107 bytes)",
                          "use a shorter path"});
    } else if (!host.Exists(*named)) {
      findings.push_back({Severity::kWarning,
                          fmt::format("RANKTAP_SOCKET names {}, where nobody listens", *named),
                          fmt::format("start `ranktap collect --socket {}`, or unset it", *named)});
    }
  }
  const std::string runtime = host.Variable("XDG_RUNTIME_DIR").value_or("");
  const std::string temporary = host.Variable("TMPDIR").value_or("/tmp");
  const std::string directory = !runtime.empty() && host.Exists(runtime) ? runtime : temporary;
  if (host.Access(directory, W_OK | X_OK) != 0) {
    findings.push_back(
        {Severity::kProblem,
         fmt::format("{} cannot be written to: `ranktap run` has no place for its socket",
                     directory),
         "set TMPDIR to a directory of your own"});
  } else {
    findings.push_back(
        {Severity::kOk, fmt::format("`ranktap run` makes its socket in {}", directory), ""});
  }
  return findings;
}

std::vector<Finding> CheckSpool(const HostView& host) {
  const std::string path =
      host.Variable("RANKTAP_SPOOL").value_or(proto::SpoolDirectoryOf(host.user()));
  struct stat status {};
  const bool exists = ::lstat(host.Path(path).c_str(), &status) == 0;
  if (exists &&
      (!S_ISDIR(status.st_mode) || status.st_uid != host.user() || (status.st_mode & 077) != 0)) {
    return {
        {Severity::kProblem,
         fmt::format("{} is not a directory of this user's alone (mode {}, uid {}): agents refuse "
                     "it, and without a collector events are lost once the rings are full",
                     path, Octal(status.st_mode), status.st_uid),
         "remove it, or name another with RANKTAP_SPOOL"}};
  }
  const std::string parent = std::filesystem::path(path).parent_path();
  if (!exists && host.Access(parent, W_OK | X_OK) != 0) {
    return {{Severity::kWarning,
             fmt::format("{} cannot be written to: no spool can be made there", parent),
             "name another place with RANKTAP_SPOOL"}};
  }
  std::vector<Finding> findings;
  const int full = host.Probe("spool-space", [&] {
    struct statvfs info {};
    if (::statvfs(parent.c_str(), &info) != 0) return 0;
    return info.f_bavail * info.f_frsize < (uint64_t{1} << 30) ? ENOSPC : 0;
  });
  if (full != 0) {
    findings.push_back(
        {Severity::kWarning,
         fmt::format(
             "less than 1 GiB is free at {}, where a process spools what no collector takes",
             parent),
         "make room, or name another place with RANKTAP_SPOOL"});
  }
  size_t orphans = 0;
  for (const std::string& name : host.List(path)) {
    orphans += name.ends_with(proto::kSpoolSuffix) ? 1 : 0;
  }
  if (orphans > 0) {
    findings.push_back({Severity::kNote,
                        fmt::format("{} {} in {} for a collector", orphans,
                                    orphans == 1 ? "spool waits" : "spools wait", path),
                        "`ranktap collect` takes them in"});
  }
  if (findings.empty()) findings.push_back({Severity::kOk, path, ""});
  return findings;
}

}  // namespace ranktap::collector
