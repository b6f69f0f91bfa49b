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
// "train.py": what the process was started to run; a program without a script: its own name. Empty
// where the trace does not say.
std::string ScriptOf(const v1::Process& process);

// For sentences: "rank 3"; where no rank is known "train.py (process 4711)", or the file.
std::string RankName(const Trace& trace);

// Nothing where there is no whole.
inline Cell Percent(int64_t part, int64_t whole) {
  return whole == 0 ? Cell() : Cell(100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace ranktap::collector
