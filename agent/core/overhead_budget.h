// Whether our hooks take more of the program's time than they may: looked at once a second, acted
// on when it lasts.
// Runs on: the sender thread.  May not: allocate.
#pragma once

#include <cstdint>

namespace ranktap::agent {

class OverheadBudget {
 public:
  // In millionths of wall time; 0: no limit.
  void SetLimit(uint32_t ppm) { limit_ppm_ = ppm; }
  uint32_t limit_ppm() const { return limit_ppm_; }

  // Both cumulative, in ticks of one clock: time in hooks, summed over the program's threads, and
  // time itself. True when the share was over the limit in kSustained looks in a row; it starts
  // over then. We do not record less because the scheduler had one bad second.
  bool IsExceeded(uint64_t hook_ticks, uint64_t now_ticks);
  // The share over the looks that made up the last verdict, or over the last look.
  uint32_t share_ppm() const { return share_ppm_; }
  // Call it when another level is recorded: earlier measurements say nothing any more.
  void Restart() { looks_ = 0, since_ticks_ = 0; }

 private:
  static constexpr int kSustained = 3;

  uint32_t limit_ppm_ = 0;
  uint32_t share_ppm_ = 0;
  int looks_ = 0;  // over the limit, in a row
  uint64_t since_ticks_ = 0, since_hook_ticks_ = 0;
};

}  // namespace ranktap::agent
