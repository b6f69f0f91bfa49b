#include "collector/hang/rank_processes.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "collector/stacks/proc_files.h"
#include "collector/stacks/process_stacks.h"

namespace ranktap::collector {
namespace {

// A process is read anew in so many looks; then its environment is what it stays.
constexpr int kYoungLooks = 10;

// As agent/core/rank_identity.cc has them, the first that is set.
constexpr std::string_view kRankVariables[] = {"RANKTAP_RANK", "RANK",     "OMPI_COMM_WORLD_RANK",
                                               "PMIX_RANK",    "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                               "SLURM_PROCID"};
constexpr std::string_view kWorldVariables[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                                "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};
constexpr std::string_view kLocalVariables[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                                "MPI_LOCALRANKID", "SLURM_LOCALID"};

using Environment = std::map<std::string_view, std::string_view>;

Environment ParseEnvironment(std::string_view text) {
  Environment variables;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const size_t equals = entry.find('=');
    if (equals != entry.npos) {
      variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
  return variables;
}

std::string_view ValueOf(const Environment& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view() : found->second;
}

std::string_view FirstOf(const Environment& variables, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto value = ValueOf(variables, name); !value.empty()) return value;
  }
  return {};
}

std::optional<uint32_t> NumberOf(std::string_view text) {
  uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// Word `index` behind the name in /proc/PID/stat, the state being 0; 0 where there is none.
int StatWord(pid_t pid, int index) {
  const std::string stat = ReadProcFile(fmt::format("/proc/{}/stat", pid)).value_or("");
  size_t at = stat.rfind(')');
  for (int i = 0; i <= index && at != stat.npos; ++i) at = stat.find(' ', at + 1);
  int number = 0;
  if (at != stat.npos) {
    (void)std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), number);
  }
  return number;
}
constexpr int kParent = 1, kExitCode = 49;

// Before its parent has taken it, /proc has the status; afterwards the pidfd.
std::optional<int> EndOf(const RankProcess& rank) {
  const auto condition = ConditionOf(rank.pid, rank.pid);
  const int left = StatWord(rank.pid, kExitCode);
  if (left != 0) return left;
  const auto status = WaitStatusOf(rank.handle);
  return status || !condition || condition->state != 'Z' ? status : 0;
}

bool HasEnded(const RankProcess& rank) {
  if (rank.handle.valid()) {
    pollfd polled{.fd = rank.handle.get(), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1;
  }
  const auto condition = ConditionOf(rank.pid, rank.pid);
  return !condition || condition->state == 'Z' || condition->state == 'X';
}

}  // namespace

std::optional<int> WaitStatusOf(const FileDescriptor& handle) {
  // linux/pidfd.h of 6.15, which Debian 12 does not have.
  struct PidfdInfo {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
  };
  static_assert(sizeof(PidfdInfo) == 64);
  constexpr uint64_t kExit = 1 << 3;
  PidfdInfo info{.mask = kExit};
  if (!handle.valid() || ::ioctl(handle.get(), _IOWR(0xff, 11, PidfdInfo), &info) != 0 ||
      (info.mask & kExit) == 0) {
    return std::nullopt;
  }
  return info.exit_code;
}

void RankProcesses::Read(pid_t pid, Candidate* candidate) const {
  ++candidate->looks;
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) return;
  candidate->user = owner.st_uid;
  if (own_only_ && owner.st_uid != ::geteuid()) return;
  candidate->parent = StatWord(pid, kParent);
  const std::string text = ReadProcFile(fmt::format("/proc/{}/environ", pid)).value_or("");
  const Environment variables = ParseEnvironment(text);
  candidate->is_ours = ValueOf(variables, "RANKTAP_SOCKET") == socket_;
  if (!candidate->is_ours) return;
  candidate->rank = NumberOf(FirstOf(variables, kRankVariables));
  candidate->world = NumberOf(FirstOf(variables, kWorldVariables)).value_or(0);
  candidate->local_rank = FirstOf(variables, kLocalVariables);
  const std::string_view address = ValueOf(variables, "MASTER_ADDR");
  candidate->job = address.empty()
                       ? fmt::format("below {}", candidate->parent)
                       : fmt::format("{}:{} {}", address, ValueOf(variables, "MASTER_PORT"),
                                     ValueOf(variables, "TORCHELASTIC_RUN_ID"));
  if (candidate->rank && !candidate->has_python) candidate->has_python = HasPython(pid);
}

// Some of its children have another rank: it is a launcher that itself was given one.
bool RankProcesses::IsLauncher(pid_t pid) const {
  const Candidate& own = candidates_.at(pid);
  return std::ranges::any_of(candidates_, [&](const auto& entry) {
    const Candidate& other = entry.second;
    return other.parent == pid && other.rank && other.has_python &&
           (other.rank != own.rank || other.local_rank != own.local_rank);
  });
}

// A loader's worker has its rank's environment.
bool RankProcesses::IsBelowItsRank(const Candidate& candidate) const {
  constexpr int kDeepest = 64;
  auto above = candidates_.find(candidate.parent);
  for (int i = 0; i < kDeepest && above != candidates_.end(); ++i) {
    const Candidate& parent = above->second;
    if (!parent.is_ours || parent.rank != candidate.rank ||
        parent.local_rank != candidate.local_rank) {
      return false;
    }
    if (parent.has_python) return true;
    above = candidates_.find(parent.parent);
  }
  return false;
}

void RankProcesses::DropEnded() {
  for (auto rank = ranks_.begin(); rank != ranks_.end();) {
    if (!HasEnded(rank->second)) {
      ++rank;
      continue;
    }
    ended_.push_back({.rank = rank->second.rank,
                      .job = rank->second.job,
                      .pid = rank->first,
                      .wait_status = EndOf(rank->second)});
    Candidate& gone = candidates_[rank->first];  // a zombie stays in /proc
    gone.rank.reset();
    gone.looks = kYoungLooks;
    rank = ranks_.erase(rank);
  }
}

void RankProcesses::Update() {
  DropEnded();
  const std::vector<pid_t> alive = NumbersIn("/proc");
  const std::set<pid_t> numbers(alive.begin(), alive.end());
  std::erase_if(candidates_, [&](const auto& entry) { return !numbers.contains(entry.first); });
  for (const pid_t pid : alive) {
    Candidate& candidate = candidates_[pid];
    if (candidate.looks < kYoungLooks) Read(pid, &candidate);
  }
  for (const auto& [pid, candidate] : candidates_) {
    if (!candidate.is_ours || !candidate.rank || !candidate.has_python) continue;
    if (IsLauncher(pid) || IsBelowItsRank(candidate)) {
      ranks_.erase(pid);
      continue;
    }
    RankProcess& rank = ranks_[pid];
    if (!rank.handle.valid()) {
      rank.handle.Reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    }
    rank.pid = pid;
    rank.rank = *candidate.rank;
    rank.world = candidate.world;
    rank.job = candidate.job;
    rank.user = candidate.user;
  }
}

}  // namespace ranktap::collector
