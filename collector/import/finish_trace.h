#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// What every importer does behind the last row: sorts the tables (rows of equal start in an
// order that is not the file's), joins work to its launches and
// operators, finds the first and the last moment, gives reserved memory back.
void FinishTrace(Trace* trace);

}  // namespace ranktap::collector
