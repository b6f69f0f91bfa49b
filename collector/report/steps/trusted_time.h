// Whether shares of a run's time can be believed. A part of verdict.h.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// Why no share of time can be trusted, for "No verdict: ...": what of the run is missing. Empty:
// nothing is.
std::string WhatIsMissing(const Run& run);

}  // namespace ranktap::collector
