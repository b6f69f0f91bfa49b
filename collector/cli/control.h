// What `start`, `stop` and `status` have in common: which collector is meant, and the talk with it.
#pragma once

#include <string>
#include <vector>

#include "collector/terminal/arguments.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

struct ControlTarget {
  std::string socket;  // empty: every collector of this user that is found
  std::string job;     // empty: the only one there is
  bool all = false;    // every job
};
void AddTargetOptions(Arguments* app, ControlTarget* target);

struct CollectorAnswer {
  std::string socket;
  v1::ControlReply reply;
};
// The collectors that know the target's job (any job: all that answer), with what they say of it.
// Empty, after a complaint, where there is none.
std::vector<CollectorAnswer> FindTarget(const ControlTarget& target);

// The job that the target names: by its whole name, else the only one whose name, or whose run's
// name, begins so.
std::string FullJobName(const ControlTarget& target);

// Those that keep the last part of a job (--keep); all, where none does.
std::vector<CollectorAnswer> ThoseThatKeep(std::vector<CollectorAnswer> found);

// True, after a complaint that names them, when there are several jobs and the target names none.
// `or_else`: what else the caller may do than name one.
bool IsAmbiguous(const ControlTarget& target, const std::vector<CollectorAnswer>& found,
                 const char* or_else = "");

// The name of a job on the command line: its launcher's name for it, else its run's directory.
std::string JobNameOf(const v1::ProcessStatus& process);
// "rank 3", "pid 4711"
std::string ProcessNameOf(const v1::ProcessStatus& process);

// Sends `request`, with the target's job, to each collector, and waits until every process that was
// told has confirmed, or has ended. An exit status; prints one line a collector.
int OrderLevels(const ControlTarget& target, v1::ControlRequest request, bool wait);

}  // namespace ranktap::collector
