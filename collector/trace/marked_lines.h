// What the agent's hooks in a framework say in text: marks whose payload is lines.
#pragma once

#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct MarkedLine {
  uint32_t row = 0;  // of Trace::marks
  std::string_view text;
};

// The lines of all marks called `name` in `domain`, in the order of the marks. They point into the
// trace's payloads.
std::vector<std::string_view> MarkedLines(const Trace& trace, std::string_view domain,
                                          std::string_view name);
// The same with where they stand.
std::vector<MarkedLine> MarkedLinesWithRows(const Trace& trace, std::string_view domain,
                                            std::string_view name);

}  // namespace ranktap::collector
