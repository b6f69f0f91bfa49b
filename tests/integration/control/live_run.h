// A job of several ranks under `ranktap run`, which works until it is told to end, and the verbs
// that talk to it meanwhile.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::control_test {

using agent_test::Environment;
using standin_test::Json;
using standin_test::SimulatedRun;

// `ranktap ARGUMENTS`, to its end.
std::unique_ptr<SimulatedRun> Ranktap(std::vector<std::string> arguments);

// True as soon as the condition is; false after a minute.
bool WaitUntil(const std::function<bool()>& condition);

class LiveRun {
 public:
  // Each rank launches `rate` kernels a second (0: as fast as it can).
  LiveRun(int ranks, int rate, const std::vector<std::string>& options,
          const Environment& environment = {});
  // Each rank is this command of the shell's, which is to end once there is the file $STOP.
  LiveRun(int ranks, const std::string& command, const std::vector<std::string>& options,
          const Environment& environment);
  ~LiveRun();
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  const std::string& path() const { return path_; }
  // What `ranktap status` says of it now: the rows, by rank.
  std::map<int, Json> Status() const;
  bool AwaitRanks(size_t count) const;
  // Every rank that is there is at this level.
  bool AwaitLevel(const std::string& level) const;
  // Lets the ranks end, waits, and loads what they left.
  void End();
  const collector::Run& run() const { return run_; }
  const SimulatedRun& process() const { return *process_; }
  const collector::Trace* TraceOf(uint32_t rank) const;

 private:
  std::string folder_, path_;
  std::unique_ptr<SimulatedRun> process_;
  std::thread thread_;
  collector::Run run_;
};

}  // namespace ranktap::control_test
