// The launchers' variables, as a table.
// Runs on: the thread that starts the agent, and rare hooks.  May not: run in a constructor.
#include "agent/core/rank_identity.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace ranktap::agent {
namespace {

class Environment {
 public:
  explicit Environment(std::span<const char* const> entries) : entries_(entries) {}

  std::optional<std::string_view> Text(std::string_view name) const {
    if (name.empty()) return std::nullopt;
    for (const char* entry : entries_) {
      const std::string_view text(entry);
      if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=') {
        return text.substr(name.size() + 1);
      }
    }
    return std::nullopt;
  }
  std::optional<uint32_t> Number(std::string_view name) const {
    const auto text = Text(name);
    if (!text) return std::nullopt;
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
    return value;
  }
  bool Has(std::string_view name) const { return Text(name).has_value(); }

 private:
  std::span<const char* const> entries_;
};

struct Launcher {
  std::string_view rank, local_rank, world_size, local_world_size, node_rank, restart, job;
  bool (*applies)(const Environment&);
};

bool Always(const Environment&) { return true; }
bool HasTorchCompanions(const Environment& environment) {
  return environment.Has("LOCAL_RANK") || environment.Has("TORCHELASTIC_RUN_ID");
}
bool IsRayWorker(const Environment& environment) {
  return environment.Has("RAY_JOB_ID") && environment.Has("LOCAL_RANK");
}
bool IsSlurmStepOfSeveral(const Environment& environment) {
  return environment.Has("SLURM_STEP_ID") && environment.Number("SLURM_NTASKS").value_or(0) > 1;
}

constexpr std::string_view kNone;
// In order of precedence; OMPI_COMM_WORLD_NODE_RANK is not a node's rank and not used.
constexpr std::array<Launcher, 8> kLaunchers = {{
    // Ray Train sets torchrun's names from Python, in a worker that has long begun.
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", kNone, "RAY_JOB_ID",
     IsRayWorker},
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK",
     "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID", HasTorchCompanions},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", kNone, kNone, "PMIX_NAMESPACE", Always},
    {"PMIX_RANK", kNone, kNone, kNone, kNone, kNone, "PMIX_NAMESPACE", Always},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "MPI_LOCALNRANKS", kNone, kNone, kNone, Always},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_SIZE", kNone, kNone, kNone, Always},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", kNone, "SLURM_NODEID", "SLURM_RESTART_COUNT",
     "SLURM_JOB_ID", IsSlurmStepOfSeveral},
    // Last: Kubeflow's RANK is that of the pod, whose torchrun gives its ranks their own.
    {"RANK", kNone, "WORLD_SIZE", kNone, "NODE_RANK", kNone, kNone, Always},
}};

// The launcher's other numbers are those of another process, too; the job is the same.
RankIdentity Replaced(RankIdentity found, const ToldRank& told, std::string origin) {
  RankIdentity identity;
  identity.rank = told.rank;
  identity.world_size = told.world_size;
  identity.restart = found.restart;
  identity.job = std::move(found.job);
  identity.origin = std::move(origin);
  return identity;
}

}  // namespace

RankIdentity FindRankIdentity(std::span<const char* const> entries,
                              std::optional<uint32_t> explicit_rank) {
  const Environment environment(entries);
  RankIdentity identity;
  for (const Launcher& launcher : kLaunchers) {
    if (!launcher.applies(environment)) continue;
    const auto rank = environment.Number(launcher.rank);
    if (!rank) continue;
    identity = {.rank = rank,
                .local_rank = environment.Number(launcher.local_rank),
                .world_size = environment.Number(launcher.world_size),
                .local_world_size = environment.Number(launcher.local_world_size),
                .node_rank = environment.Number(launcher.node_rank),
                .restart = environment.Number(launcher.restart),
                .job = std::string(environment.Text(launcher.job).value_or("")),
                .origin = std::string(launcher.rank)};
    break;
  }
  if (explicit_rank) {
    identity.rank = explicit_rank;
    identity.origin = "RANKTAP_RANK";
  }
  return identity;
}

RankIdentity WithToldRank(RankIdentity found, std::optional<ToldRank> told) {
  if (!told || found.origin == "RANKTAP_RANK") return found;
  if (found.rank == told->rank) {
    found.world_size = told->world_size;
    return found;
  }
  return Replaced(std::move(found), *told, "torch.distributed");
}

RankIdentity WithNcclRank(RankIdentity found, std::optional<ToldRank> communicator) {
  if (!communicator || found.origin == "RANKTAP_RANK" || found.origin == "torch.distributed") {
    return found;
  }
  const bool is_smaller = found.world_size && *found.world_size < communicator->world_size;
  if (found.rank && !is_smaller) return found;
  return Replaced(std::move(found), *communicator, "NCCL");
}

}  // namespace ranktap::agent
