// The rank of this process, by the variables that launchers put into the environment. A pure
// function: the environment may change while the process lives (Ray and mp.spawn set RANK from
// Python), so it is asked again at every entry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ranktap::agent {

struct RankIdentity {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> local_rank;
  std::optional<uint32_t> world_size;
  std::optional<uint32_t> local_world_size;
  std::optional<uint32_t> node_rank;
  std::optional<uint32_t> restart;
  std::string job;
  std::string origin;  // the variable the rank came from; empty: no rank

  bool operator==(const RankIdentity&) const = default;
};

// The rank that torch.distributed told the program, or that the program told NCCL. No variable need
// say it: mp.spawn hands the rank to a function.
struct ToldRank {
  uint32_t rank = 0;
  uint32_t world_size = 0;
};

// `found` with what the program was told, which is right where the two differ: a variable may be
// that of the launcher's process on this node. An explicit RANKTAP_RANK stays.
RankIdentity WithToldRank(RankIdentity found, std::optional<ToldRank> told);

// `found` with the rank in NCCL's largest communicator, where `found` has no rank or its job is
// smaller than that communicator: a pod's RANK counts pods.
RankIdentity WithNcclRank(RankIdentity found, std::optional<ToldRank> communicator);

// `explicit_rank` is RANKTAP_RANK. Precedence: that; RANK where torchrun's or another launcher's
// companions are set; Open MPI; PMIx; PMI; MVAPICH; Slurm, only for a step of several tasks
// (sbatch alone sets SLURM_PROCID=0 for everything below it); RANK alone.
RankIdentity FindRankIdentity(std::span<const char* const> environment,
                              std::optional<uint32_t> explicit_rank);

}  // namespace ranktap::agent
