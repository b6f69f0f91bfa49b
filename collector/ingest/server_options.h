// How a collector serves its agents.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collector/ingest/limits.h"
#include "collector/ingest/store/kept_segments.h"
#include "collector/ingest/store/old_runs.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {

struct ServerOptions {
  IngestLimits limits;
  v1::Level level = v1::LEVEL_KERNELS;
  // `ranktap start` means this one where it names none.
  v1::Level start_level = v1::LEVEL_KERNELS;
  std::string collector_version;
  std::string collector_id;  // 16 random bytes
  uid_t owner = 0;           // whose agents are served, beside root's
  bool all_users = false;    // everybody's
  // Processes below this one are served whoever they have become (setpriv, gosu); 0: no.
  pid_t family_of = 0;
  // A collector to come goes on where this one stops (RunRegistry): processes that live on keep
  // what is in their rings for it, and a new process may have files of an earlier one.
  bool resumable = false;
  // Spools are taken of processes that were told one of these sockets, or that an earlier collector
  // has stored something of; empty: all.
  std::vector<std::string> spools_of;
  bool TakesSpoolsOf(const std::string& socket) const {
    return spools_of.empty() || socket.empty() ||
           std::ranges::find(spools_of, socket) != spools_of.end();
  }
  KeepLimits keep;              // nothing: every event stays
  std::string log_path;         // empty: no log
  bool sample_devices = false;  // ask NVML once a second
  // The function that tries a CUPTI that may end a process (cupti_trials.h); empty: nothing does.
  std::string trial_program;
  const RunCleaning* cleaning = nullptr;  // outlives the server; null: no run is removed
};

}  // namespace ranktap::collector
