// NCCL's RAS: a port on which any process of a job says how far each rank of the job got. Whoever
// listens there may be somebody else: what it says is text for a person, bounded in time and size.
#pragma once

#include <chrono>
#include <string>

namespace ranktap::collector {

// `address` as NCCL_RAS_ADDR has it, "localhost:28028" or with an IP address; empty: NCCL's
// default. The report, or a line that says why there is none. Empty: nobody listens.
std::string AskRas(const std::string& address, std::chrono::milliseconds patience);

}  // namespace ranktap::collector
