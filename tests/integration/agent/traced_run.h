// Runs a program on the stand-in under `ranktap run`, and reads the traces through the product.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collector/trace/load/trace_check.h"
#include "collector/trace/run.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::agent_test {

using standin_test::BuildPath;
using standin_test::Environment;
using standin_test::Json;
using standin_test::SimulatedRun;

class TracedRun {
 public:
  explicit TracedRun(const std::vector<std::string>& command, const Environment& environment = {},
                     const std::vector<std::string>& options = {});
  ~TracedRun();
  TracedRun(const TracedRun&) = delete;
  TracedRun& operator=(const TracedRun&) = delete;

  // What the user sees, and the stand-in's truth.
  const SimulatedRun& process() const { return *process_; }
  // Empty, with a reason in `load_problem`, when nothing was traced.
  const collector::Run& run() const { return run_; }
  collector::Run TakeRun() { return std::move(run_); }
  const std::string& load_problem() const { return load_problem_; }
  const std::string& path() const { return path_; }
  // nullptr: no trace of this process.
  const collector::Trace* TraceOf(int pid) const;
  // Every complaint of `ranktap verify`, one a line; empty: the run verifies.
  std::string Problems() const;

 private:
  std::string folder_;
  std::string path_;
  std::unique_ptr<SimulatedRun> process_;
  collector::Run run_;
  std::string load_problem_;
};

std::string Host(const std::string& name);

// Of a run that was not waited for by a shell, as a shell says it.
int ExitStatus(const SimulatedRun& run);
// The same exit status, stdout and stderr.
void ExpectSameToTheUser(const SimulatedRun& bare, const SimulatedRun& traced);

// Of all the trace's writers: stored, and lost by the agent's or the collector's word.
struct Sums {
  uint64_t produced = 0, stored = 0, lost = 0;
};
Sums SumWriters(const collector::Trace& trace);

}  // namespace ranktap::agent_test
