// Cells that most tables have.
#pragma once

#include <fmt/core.h>

#include <string>

#include "collector/report/table.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

inline Cell RankCell(const Trace& trace) {
  return trace.info.rank ? Cell(static_cast<int64_t>(*trace.info.rank)) : Cell();
}
// For sentences: "rank 3", or the file where no rank is known.
inline std::string RankName(const Trace& trace) {
  return trace.info.rank ? fmt::format("rank {}", *trace.info.rank) : trace.info.file;
}
// Nothing where there is no whole.
inline Cell Percent(int64_t part, int64_t whole) {
  return whole == 0 ? Cell() : Cell(100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace ranktap::collector
