// Who waits for another rank's message, as a part of a verdict.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// " Rank 1 waits 23.05 ms of each 31.20 ms step (73.9 %) to receive from rank 0, which spends 25.10
// ms of it in the forward pass." Or "to send to". Of the rank that waits most. Empty: none waits
// so, or collectives say who is late.
std::string DescribeMessageWaits(const Run& run);

}  // namespace ranktap::collector
