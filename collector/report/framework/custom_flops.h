// The share of a trace's time whose FLOPs nobody knows. A part of the reports that add FLOPs up.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// A sentence for each rank with such time; empty where it is under one percent.
std::vector<std::string> NotesOfUnknownFlops(const Run& run);

// The operators and kernels whose FLOPs nobody knows.
std::set<std::string, std::less<>> NamesOfUnknownFlops(const Trace& trace);

}  // namespace ranktap::collector
