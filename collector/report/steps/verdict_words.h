// How a verdict says what the time went to.
#pragma once

#include <string>
#include <string_view>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What a device lost: "copies and memsets that nothing computes behind".
std::string_view DescribeLoss(Cause cause);

// A phase of the host: "in the backward pass". Empty: the cause is not a phase.
std::string_view DescribePhase(Cause cause);

// What a host without a device did: "waiting for data", "waiting for other ranks".
std::string_view DescribeHostsTime(Cause cause);

// Where a straggler spends more time than the others: "in the forward pass".
std::string DescribeExcess(Cause cause);

// A sentence where a host runs ahead of its device by more than a step; else empty.
std::string DescribeHostAhead(const Run& run);

}  // namespace ranktap::collector
