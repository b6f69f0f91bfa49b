// The checks, by claim (claim.h). Each says in a sentence's end why the two disagree.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// Late rank. It rests on the lengths of matched collectives: the shortest member came last.

// "3 ranks are taken for one group of 2": calls of several groups were matched as one.
std::string MoreRanksThanTheGroupHas(const Run& run);
// "rank 0 made 10 steps and rank 1 made 30": who has no batches left waits for nobody's lateness.
std::string RanksMakeUnlikeSteps(const Run& run);
// "they would wait 14.45 ms of each 5.401 ms step"
std::string WaitsAreLongerThanSteps(const Run& run);
// "by their clocks rank 0 comes last to them": of the time that the late rank is said to cost.
std::string AnotherRankArrivesLast(const Run& run);
// "rank 2 falls behind by 1.000 ms more with each step": ranks that wait for each other do not.
std::string AnotherRankFallsBehind(const Run& run);

// Transfer. It rests on the least length of a collective over its group's ranks.

// "the other ranks of its groups are not recorded", or calls that nothing matches across ranks.
std::string MembersAreMissing(const Run& run);

// Recoverable. It rests on the critical path, and on what the file can show of it.

// "no launches are recorded": nobody knows whether the host was late.
std::string LaunchesAreMissing(const Run& run);
// "the critical path is known for 40.0 % of the steps only"
std::string PathIsCutOff(const Run& run);
// Of the largest loss alone: launched work waits, and nothing in the file ends when it begins.
std::string CauseIsNotInTheFile(const Run& run);

// Busy. It rests on the device's records.

// "the work of 260 launches of rank 0 is not in the file"
std::string WorkIsNotInTheFile(const Run& run);
// "NVML saw device 0 of rank 0 in use for 95.0 % of the time, the records for 20.0 %"
std::string DevicesSayOtherwise(const Run& run);

// FLOPs. They rest on the shapes of operators. Roofline, modules and layers add up the same counts,
// so that nothing is left to compare.

// "no operator tells the FLOPs of 60.0 % of the time of rank 0's products"
std::string ProductsAreNotCounted(const Run& run);

// Peak. It rests on the types that are multiplied, and the kernels' names.

// "rank 0 would do 143.0 % of the peak of its device for float"
std::string RateIsOverThePeak(const Run& run);
// "kernels of 16 bits run 80.0 % of the time of rank 0's products of 32-bit floats": what casts the
// inputs is not recorded, so the peak would be that of another type.
std::string KernelsSayAnotherType(const Run& run);

}  // namespace ranktap::collector
