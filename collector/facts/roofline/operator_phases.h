// In which phase of a training step each operator ran. A part of roofline.h.
#pragma once

#include <vector>

#include "collector/facts/framework/op_modules.h"
#include "collector/facts/roofline/roofline.h"

namespace ranktap::collector {

// By row of Operators. `places`: PlaceOperators(trace).
std::vector<RooflinePhase> OperatorPhases(const Trace& trace, const std::vector<OpPlace>& places);

}  // namespace ranktap::collector
