// What two lists of runs were asked to do, and held meanwhile: the parts of the gate's sentence
// beside the time. FLOPs, the memory peak, and settings from batch and dtype to versions.
#pragma once

#include <string>
#include <vector>

#include "collector/report/gate/run_figures.h"

namespace ranktap::collector {

struct OtherSetting {
  std::string name, before, after;
};

// The values that the runs of one side have and those of the other do not.
std::vector<OtherSetting> OtherSettings(const std::vector<RunFigures>& base,
                                        const std::vector<RunFigures>& runs);

// " A step computes 2.000 T FLOPs (+100.0 %). Configuration: batch is 64 and was 32."; empty: no
// run differs.
std::string DescribeWorkload(const std::vector<RunFigures>& base,
                             const std::vector<RunFigures>& runs,
                             const std::vector<OtherSetting>& others);

}  // namespace ranktap::collector
