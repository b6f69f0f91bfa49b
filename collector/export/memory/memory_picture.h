// The parts that pictures of memory share.
#pragma once

#include <array>
#include <string>

#include "collector/facts/framework/memory_blocks.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// torch.profiler._memory_profiler's, in the order of MemoryCategory.
inline constexpr std::array<const char*, kMemoryCategories> kMemoryColors = {
    "darkgreen", "goldenrod", "black", "mediumpurple", "red", "mediumblue", "royalblue", "grey"};

// For XML: what it cannot hold becomes '?'.
std::string EscapedForXml(std::string_view text);

// "run1, rank 3": whose picture it is.
std::string DescribePicture(const Trace& trace);

}  // namespace ranktap::collector
