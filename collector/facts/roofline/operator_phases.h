// In which phase of a training step each operator ran. A part of roofline.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/facts/framework/op_modules.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

enum class RooflinePhase : uint8_t { kForward, kBackward, kRecompute, kOptimizer, kOther };
// "forward", "backward", "recompute", "optimizer", "other": between the passes, or by nobody known
std::string_view NameOf(RooflinePhase phase);

// By row of Operators. `places`: PlaceOperators(trace).
std::vector<RooflinePhase> OperatorPhases(const Trace& trace, const std::vector<OpPlace>& places);

}  // namespace ranktap::collector
