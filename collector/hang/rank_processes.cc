#include "collector/hang/rank_processes.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <ctime>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "collector/hang/recorded_error.h"
#include "collector/stacks/proc_files.h"
#include "collector/stacks/process_stacks.h"

namespace ranktap::collector {
namespace {

// A process is read anew in so many looks; then its environment is what it stays.
constexpr int kYoungLooks = 10;
// A process that may yet make a process group is looked at each time, later one time of ten.
constexpr int kEagerLooks = 120, kLazyEvery = 10;

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

constexpr int kParent = 1, kStartTime = 19;  // StatWord's

uint64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::optional<bool> KillsGrew(const RankProcess& rank) {
  const auto kills = rank.kills ? OomKillsIn(rank.kills_file) : std::nullopt;
  return kills ? std::optional(*kills > *rank.kills) : std::nullopt;
}

// PyTorch names the threads of a process group so; a forked child has none of them.
bool HasGroupThread(pid_t pid) {
  return std::ranges::any_of(ThreadsOf(pid), [pid](pid_t thread) {
    const std::string name =
        ReadProcFile(fmt::format("/proc/{}/task/{}/comm", pid, thread)).value_or("");
    return name.starts_with("pt_gloo_") || name.starts_with("pt_nccl_");
  });
}

// Where there are no pidfds.
bool IsGone(const RankProcess& rank) {
  const auto condition = ConditionOf(rank.pid, rank.pid);
  return !condition || condition->state == 'Z' || condition->state == 'X';
}

}  // namespace

std::optional<uint64_t> OomKillsIn(const std::string& file) {
  const std::string text = ReadProcFile(file).value_or("");
  constexpr std::string_view kName = "oom_kill ";
  size_t at = text.find(kName);
  while (at != text.npos && at != 0 && text[at - 1] != '\n') at = text.find(kName, at + 1);
  if (at == text.npos) return std::nullopt;
  uint64_t number = 0;
  (void)std::from_chars(text.data() + at + kName.size(), text.data() + text.size(), number);
  return number;
}

std::string OomKillsFile(const std::string& groups, const std::string& root) {
  std::string_view rest = groups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    std::string file;
    if (names.empty()) file = fmt::format("{}{}/memory.events", root, path);
    if (names == "memory") file = fmt::format("{}/memory{}/memory.oom_control", root, path);
    if (!file.empty() && OomKillsIn(file)) return file;
  }
  // Its group lies elsewhere, or is the root: the machine's count.
  return OomKillsIn("/proc/vmstat") ? "/proc/vmstat" : "";
}

void RankProcesses::Read(pid_t pid, Candidate* candidate) const {
  ++candidate->looks;
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) return;
  candidate->user = owner.st_uid;
  if (own_only_ && owner.st_uid != ::geteuid()) return;
  candidate->parent = static_cast<pid_t>(StatWord(pid, kParent));
  const std::string text = ReadProcFile(fmt::format("/proc/{}/environ", pid)).value_or("");
  const Environment variables = ParseEnvironment(text);
  candidate->is_ours = ValueOf(variables, "RANKTAP_SOCKET") == socket_;
  if (!candidate->is_ours) return;
  candidate->rank = NumberOf(FirstOf(variables, kRankVariables));
  candidate->world = NumberOf(FirstOf(variables, kWorldVariables)).value_or(0);
  candidate->local_rank = FirstOf(variables, kLocalVariables);
  candidate->error_file = ValueOf(variables, "TORCHELASTIC_ERROR_FILE");
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

bool RankProcesses::IsBelowAGroup(const Candidate& candidate) const {
  const auto above = candidates_.find(candidate.parent);
  return above != candidates_.end() && above->second.has_group;
}

// The ranks of torch.multiprocessing.spawn and the like: those of one parent that have made a
// process group are numbered in the order in which it started them.
void RankProcesses::FindSpawned() {
  for (auto& [pid, candidate] : candidates_) {
    const bool is_known = candidate.has_group || (candidate.rank && !IsBelowItsRank(candidate));
    if (!candidate.is_ours || is_known) continue;
    const int look = candidate.group_looks++;
    if (look >= kEagerLooks && look % kLazyEvery != 0) continue;
    if (!HasGroupThread(pid) || !HasPython(pid) || IsBelowAGroup(candidate)) continue;
    candidate.has_group = candidate.has_python = true;
    spawned_[candidate.parent][{StatWord(pid, kStartTime), pid}] = true;
  }
  for (auto& [parent, siblings] : spawned_) {
    for (auto& [birth, is_alive] : siblings) {
      const auto candidate = candidates_.find(birth.second);
      is_alive = candidate != candidates_.end() && candidate->second.has_group;
    }
  }
  std::erase_if(spawned_, [](const auto& family) {
    return std::ranges::none_of(family.second, [](const auto& sibling) { return sibling.second; });
  });
  for (const auto& [parent, siblings] : spawned_) {
    // One alone has no one to wait for, or is a program that starts itself anew.
    if (siblings.size() < 2) continue;
    uint32_t number = 0;
    for (const auto& [birth, is_alive] : siblings) {
      if (is_alive) {
        Candidate& rank = candidates_.at(birth.second);
        rank.rank = number;
        rank.world = 0;  // WORLD_SIZE is often the number of machines here
        rank.job = fmt::format("below {}", parent);
      }
      ++number;
    }
  }
}

// Workers of a server that the rank started to fork them are two below it.
pid_t RankProcesses::RankAbove(const Candidate& candidate) const {
  constexpr int kDeepest = 3;
  auto above = candidates_.find(candidate.parent);
  for (int i = 0; i < kDeepest && above != candidates_.end(); ++i) {
    if (ranks_.contains(above->first)) return above->first;
    above = candidates_.find(above->second.parent);
  }
  return 0;
}

std::vector<EndedChild> RankProcesses::EndedChildrenOf(pid_t rank) const {
  return children_.EndedOf(rank, MonotonicNs());
}

void RankProcesses::TakeEnd(pid_t pid, uint64_t now_ns) {
  ProcessEnd end{.wait_status = {}, .was_out_of_memory = {}, .seen_ns = now_ns};
  const auto above = ranks_.find(children_.RankOf(pid));
  if (children_.TakeEnd(pid, end, above == ranks_.end() ? std::nullopt : KillsGrew(above->second)))
    return;
  const auto found = ranks_.find(pid);
  if (found == ranks_.end()) return;
  const RankProcess& rank = found->second;
  end.wait_status = EndStatusOf(pid, rank.handle);
  if (end.wait_status == SIGKILL) end.was_out_of_memory = KillsGrew(rank);
  EndedRank& ended = ended_.emplace_back();
  ended.rank = rank.rank;
  ended.job = rank.job;
  ended.pid = pid;
  ended.end = end;
  if (end.wait_status.value_or(0) != 0) ended.exception = RecordedError(rank.error_file);
  constexpr uint64_t kShortlyNs = 30'000'000'000;
  for (const EndedChild& child : children_.EndedOf(pid, now_ns)) {
    if (!ended.child && child.is_bad() && child.age_ns <= kShortlyNs) ended.child = child;
  }
  children_.Forget(pid);
  Candidate& gone = candidates_[pid];  // a zombie stays in /proc
  gone.rank.reset();
  gone.looks = kYoungLooks;
  gone.is_ours = gone.has_group = false;
  ranks_.erase(found);
}

void RankProcesses::DropEnded() {
  const uint64_t now = MonotonicNs();
  for (const pid_t pid : order_.Take()) TakeEnd(pid, now);
  std::vector<pid_t> gone;
  for (const auto& [pid, rank] : ranks_) {
    if (!rank.handle.valid() && IsGone(rank)) gone.push_back(pid);
  }
  for (const pid_t pid : gone) TakeEnd(pid, now);
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
  FindSpawned();
  for (const auto& [pid, candidate] : candidates_) {
    if (!candidate.is_ours || !candidate.rank || !candidate.has_python) continue;
    if (IsLauncher(pid) || (!candidate.has_group && IsBelowItsRank(candidate))) {
      ranks_.erase(pid);
      children_.Forget(pid);
      continue;
    }
    RankProcess& rank = ranks_[pid];
    if (!rank.handle.valid()) {
      rank.handle = OpenPidfd(pid);
      order_.Watch(pid, rank.handle);
      rank.kills_file =
          OomKillsFile(ReadProcFile(fmt::format("/proc/{}/cgroup", pid)).value_or(""));
      rank.kills = OomKillsIn(rank.kills_file);
    }
    rank.pid = pid;
    rank.rank = *candidate.rank;
    rank.world = candidate.world;
    rank.job = candidate.job;
    rank.error_file = candidate.error_file;
    rank.user = candidate.user;
  }
  for (const auto& [pid, candidate] : candidates_) {
    if (!candidate.is_ours || ranks_.contains(pid)) continue;
    if (const pid_t rank = RankAbove(candidate); rank != 0) children_.Look(pid, rank, order_);
  }
}

}  // namespace ranktap::collector
