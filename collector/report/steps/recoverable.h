// How much of each loss the critical path bears. A part of verdict.h.
#pragma once

#include <array>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

// One for each trace: for each cause, per counted step, the moments at which the end of the run
// waited for work of that kind on that rank: for its host where the device stood idle for the
// host's sake, for a transfer where one is exposed, and so on. Nothing else can be won back:
// without the rest of a loss the run would end when it does now. kWait always has 0: the path goes
// on with the rank that is waited for. All 0 where the path does not come.
std::vector<CauseTimes> BorneByCriticalPath(const Run& run,
                                            const std::vector<RankWaterfall>& waterfalls);

// The same as the moments themselves, of all counted steps, by each rank's own clock. By trace and
// cause, by start. Worked out when a saving asks, once, and kept in the run's memo.
using MomentsByCause = std::array<std::vector<Interval>, kCauses>;
const std::vector<MomentsByCause>& MomentsOnCriticalPath(const Run& run);
// How much of the counted steps, of all ranks, the path is known for. Found with what it
// bears.
int64_t CoveredByCriticalPath(const Run& run);

}  // namespace ranktap::collector
