// Notes that a person needs to read a roofline: the roofs, and what is missing. A part of
// *roofline*.
#pragma once

#include <string>
#include <vector>

#include "collector/facts/roofline/roofline_rows.h"
#include "collector/report/options.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

RooflineQuestion RooflineQuestionOf(const ReportOptions& options);

std::vector<std::string> NotesOnRoofline(const Run& run, const RooflineQuestion& question,
                                         const RooflineRows& rows);

}  // namespace ranktap::collector
