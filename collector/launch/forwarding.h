// Launchers that start processes on other machines and leave the environment behind: how each is
// told to take our variables along. On one machine nothing changes, since children inherit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/launch/child_process.h"

namespace ranktap::collector {

struct Forwarding {
  std::vector<std::string> command;   // to be run in place of the given one
  Variables variables;                // what it gets
  std::vector<std::string> messages;  // what could not be forwarded, and what to do; a line each
};

// For the command whose first word is found at `path`. Rules, by the name of that word:
// - mpirun, mpiexec, orterun, prterun that say they are Open MPI's (some 10 ms to ask): `-x NAME`
//   for each variable. Not beside an mca_base_env_list of the user's: Open MPI refuses to run with
//   both.
// - srun: added to a list in `--export=` or SLURM_EXPORT_ENV. ALL needs nothing; NONE stays.
// - deepspeed, accelerate, python -m deepspeed.launcher.runner: a file in `folder` with the user's
//   lines and ours, named in DS_ENV_FILE; where `folder` is empty, a message instead.
// All others (torchrun, MPICH's Hydra) pass the environment on, or start nothing elsewhere.
// The result's variables include `planned`.
Forwarding PrepareForwarding(const std::string& path, const std::vector<std::string>& command,
                             const std::vector<std::string_view>& environment,
                             const Variables& planned, const std::string& folder);

}  // namespace ranktap::collector
