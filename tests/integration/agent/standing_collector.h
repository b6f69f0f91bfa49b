// `ranktap collect` in a folder of its own, which tests start, stop and kill.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/standin/simulated_run.h"

namespace ranktap::agent_test {

class StandingCollector {
 public:
  // The folder goes away with the object; a collector does not.
  StandingCollector();
  ~StandingCollector();
  StandingCollector(const StandingCollector&) = delete;
  StandingCollector& operator=(const StandingCollector&) = delete;

  pid_t StartCollector(const std::vector<std::string>& options = {}) const;
  // Its status, as of waitpid.
  static int End(pid_t collector, int signal);

  // One accepts connections. The socket of one that was killed is there all the same.
  bool IsServing() const;

  // What a program needs to find it.
  standin_test::Environment Joined() const;

  std::vector<std::string> Spools() const;
  std::vector<std::string> Runs() const;
  // Open files with events in them.
  std::set<std::string> Growing() const;

  // True as soon as the condition holds; false after a minute.
  static bool WaitUntil(const std::function<bool()>& condition);

 protected:
  std::string folder_;
};

}  // namespace ranktap::agent_test
