// Which collective a kernel, an operator or a range is, by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collector/facts/device_timeline.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "_allgather_base", "nccl:all_reduce" -> one word;
// empty: it is none.
std::string CommunicationType(std::string_view name);
// The same; "other": it is none.
std::string CollectiveTypeOf(std::string_view name);

// What an operator around the kernel says that its name does not: an all-to-all is sends and
// receives to NCCL ("c10d::alltoall_base_" around "ncclDevKernel_SendRecv"). Empty: nothing.
std::string_view OperatorThatCommunicates(const Trace& trace, uint32_t kernel);

// The description on the kernel, else on the operator that launched it or one around that; nullptr:
// neither has one.
const Collective* DescriptionOf(const Trace& trace, uint32_t kernel);
// CollectiveRun::type() of a piece of communication, which takes no matching.
std::string TypeOfCollective(const Trace& trace, const DeviceSpan& span);
// It says which group it is of.
bool NamesGroup(const Collective* described);
// Of the group that a description names; 0: not known, or it names none.
uint32_t GroupSizeOf(const Collective* described);

// What goes into one call, or comes out of one that only receives; 0: not known.
int64_t MessageBytes(const Collective& call);
// The full buffer of one call, as nccl-tests count it; 0: not known.
int64_t FullBufferBytes(const std::string& type, const Collective& call);

// busbw / algbw of nccl-tests (doc/PERFORMANCE.md) for a group of n.
double BusFactor(const std::string& type, uint32_t n);

}  // namespace ranktap::collector
