// How a verdict says what the time went to.
#pragma once

#include <string_view>

#include "collector/report/steps/waterfall.h"

namespace ranktap::collector {

// What a device lost: "copies and memsets that nothing computes behind".
std::string_view DescribeLoss(Cause cause);

// What a host without a device did: "waiting for data".
std::string_view DescribeHostsTime(Cause cause);

}  // namespace ranktap::collector
