#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// What every importer does behind the last row: sorts the tables, joins work to its launches and
// operators, finds the first and the last moment, gives reserved memory back.
void FinishTrace(Trace* trace);

}  // namespace ranktap::collector
