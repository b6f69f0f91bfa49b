#include "collector/cli/slow_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "collector/cli/control.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLeastSteps = 10;  // that a usual one is of
constexpr uint64_t kLeastNs = 200'000'000;

}  // namespace

std::string SlowSteps::Look(const v1::ProcessStatus& process) {
  const v1::LiveStatus& live = process.live();
  uint64_t& seen = seen_[process.session()];
  const uint64_t fresh = live.steps() - std::min(live.steps(), seen);
  seen = live.steps();
  std::string sentence;
  uint64_t longest = 0;
  const auto count = static_cast<size_t>(live.step_ns_size());
  for (size_t i = count - std::min<size_t>(count, fresh); i < count; ++i) {
    const uint64_t length = live.step_ns(static_cast<int>(i));
    if (i < kLeastSteps || length <= longest) continue;
    std::vector<uint64_t> before(live.step_ns().begin(),
                                 live.step_ns().begin() + static_cast<ptrdiff_t>(i));
    const auto middle = before.begin() + static_cast<ptrdiff_t>(before.size() / 2);
    std::nth_element(before.begin(), middle, before.end());
    const auto usual = static_cast<double>(*middle);
    if (static_cast<double>(length) < std::max(times_ * usual, usual + kLeastNs)) continue;
    longest = length;
    sentence = fmt::format("a step of {} took {}, usually {}", ProcessNameOf(process),
                           FormatNs(static_cast<int64_t>(length)),
                           FormatNs(static_cast<int64_t>(*middle)));
  }
  return sentence;
}

}  // namespace ranktap::collector
