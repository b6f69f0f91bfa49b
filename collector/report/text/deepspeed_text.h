// A model's profile as the text of DeepSpeed's Flops Profiler, so that what reads one reads the
// other.
#pragma once

#include <string>

#include "collector/report/framework/model_profile.h"

namespace ranktap::collector {

enum class DeepSpeedStyle {
  kCurrent,  // "{params} = {p}% Params, {macs} = {m}% MACs, ..."
  kOld,      // "{params}, {p}% Params, {macs}, {m}% MACs, ...", before 0.10
  kMemory,   // as kCurrent, with parameters and their bytes by dtype (DeepSpeed's PR 3693)
};

struct DeepSpeedOptions {
  DeepSpeedStyle style = DeepSpeedStyle::kCurrent;
  int module_depth = -1;  // of the aggregated profile; -1: all but the deepest, as DeepSpeed does
  int top_modules = 1;
  bool detailed = true;
  double recompute_fwd_factor = 0;
};

std::string FormatDeepSpeed(const ModelProfile& profile, const DeepSpeedOptions& options);

}  // namespace ranktap::collector
