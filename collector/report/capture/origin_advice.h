// Advice on the next recording that fits whoever made this one.
#pragma once

#include <string>
#include <string_view>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct OriginAdvice {
  std::string_view ours;      // "ranktap run --level full records them"
  std::string_view profiler;  // "torch.profiler records them with profile_memory=True"
  // Of nsys, Chakra and the rest; empty: both of the others.
  std::string_view other;
};

// Of several origins the first trace's counts.
std::string AdviceFor(const Run& run, const OriginAdvice& advice);

// "ranktap run --level full records them in the steps of --schedule"
std::string WhoRecordsMemory(const Run& run);
// Why no trace describes a model.
std::string WhyNoModel(const Run& run);

}  // namespace ranktap::collector
