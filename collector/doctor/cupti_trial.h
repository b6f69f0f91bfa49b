// Tries a CUPTI that may end a process: proto/cupti_trial.h.
#pragma once

#include <string>
#include <vector>

#include "proto/cupti_trial.h"

namespace ranktap::collector {

// The files as they are named and found now: what an answer holds for.
struct TrialFiles {
  std::string cupti, driver;
  uint64_t cupti_device = 0, cupti_inode = 0;  // another file: nothing is tried
};

// In a child of this process, which has to have one thread: starts the driver and calls CUPTI.
// Answers are kept in the user's spool directory: one trial for each pair of files.
proto::TrialOutcome TryCupti(const TrialFiles& files);

// `ranktap try-cupti CUPTI DRIVER DEVICE INODE`, which collectors alone call: the outcome's digit
// on stdout.
int TryCuptiCommand(const std::vector<std::string>& arguments);

}  // namespace ranktap::collector
