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

}  // namespace ranktap::collector
