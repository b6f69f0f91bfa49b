// Which level each run has now, and which change is ordered for it. Pure: no socket and no clock.
// Every instant is CLOCK_REALTIME in ns and comes from the caller. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "collector/file/result.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

class LevelPlans {
 public:
  // From the order to its instant: an agent's thread that is not busy hears of it within 50 ms.
  static constexpr uint64_t kLeadNs = 150'000'000;

  // `level`: that of every run before its first order. `start_level`: the level of a start that
  // names none.
  LevelPlans(v1::Level level, v1::Level start_level) : level_(level), start_level_(start_level) {}

  // The change that a start or a stop asks for, not yet ordered. It begins kLeadNs after `now_ns`
  // or later. A start opens the window with the next number, a stop ends the last one.
  // The error is a sentence for the caller, and no window is opened then.
  Result<v1::LevelChange> ChangeFor(const v1::ControlRequest& request, uint64_t now_ns);

  // The change takes the place of the plan that `run` had: of its window, too, where that has not
  // ended. An empty `run` means all runs, and the plans of single ones are forgotten.
  void Order(const std::string& run, v1::LevelChange change, uint64_t now_ns);

  // Nobody of the run is here any more. It may come back, and so the plans of the last kMostEnded
  // such runs are kept.
  static constexpr size_t kMostEnded = 64;
  void RunEnded(const std::string& run);
  // Somebody of the run has come.
  void RunBegan(const std::string& run);

  // A run without a plan of its own follows the plan of all. A process whose run is not known yet
  // has an empty one.
  v1::Level LevelAt(const std::string& run, uint64_t now_ns) const;
  // The ordered change where an instant of it lies ahead: a process that joins now has to hear of
  // it. Null: its level is all that it needs. Valid until the next Order.
  const v1::LevelChange* Ahead(const std::string& run, uint64_t now_ns) const;
  // The last order for this run alone, however old; null: there was none. Valid until the next
  // Order.
  const v1::LevelChange* OwnOrder(const std::string& run) const;
  // When that was; 0: there was none.
  uint64_t OrderedAt(const std::string& run) const;

 private:
  struct Plan {
    v1::Level before = v1::LEVEL_UNKNOWN;  // until `change` begins
    v1::LevelChange change;
    uint64_t ordered_ns = 0;
  };
  const Plan* Find(const std::string& run) const;

  v1::Level level_;
  v1::Level start_level_;
  uint64_t window_ = 0;                // the last that was opened
  std::map<std::string, Plan> plans_;  // by run; "": of runs without one of their own
  std::deque<std::string> ended_;      // runs with a plan that nobody is in, in turn
};

}  // namespace ranktap::collector
