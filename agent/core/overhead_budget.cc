// Shares of wall time.
// Runs on: the sender thread.  May not: allocate.
#include "agent/core/overhead_budget.h"

#include <algorithm>

namespace ranktap::agent {

bool OverheadBudget::IsExceeded(uint64_t hook_ticks, uint64_t now_ticks) {
  if (limit_ppm_ == 0) return false;
  const bool has_span = since_ticks_ != 0 && now_ticks > since_ticks_;
  // The estimate may shrink a little when a thread ends.
  const uint64_t spent = hook_ticks > since_hook_ticks_ ? hook_ticks - since_hook_ticks_ : 0;
  const double span = static_cast<double>(now_ticks - since_ticks_);
  since_ticks_ = now_ticks;
  since_hook_ticks_ = hook_ticks;
  if (!has_span) return false;
  const double ppm = static_cast<double>(spent) / span * 1e6;
  share_ppm_ = static_cast<uint32_t>(std::min(ppm, 4e9));
  looks_ = share_ppm_ > limit_ppm_ ? looks_ + 1 : 0;
  if (looks_ < kSustained) return false;
  Restart();
  return true;
}

}  // namespace ranktap::agent
