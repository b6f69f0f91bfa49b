#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Places in `Trace::damage`; a file can be damaged everywhere.
inline constexpr size_t kDamageListed = 100;

// Every importer ends with this: it sorts the tables (rows of equal start in an order that is not
// the file's), joins work to its launches and operators, finds the first and the last moment, gives
// reserved memory back.
void FinishTrace(Trace* trace);

// The model's statements about a file that was read to its end. `writer`: the program that wrote
// it.
void CloseTrace(const std::string& writer, uint64_t file_bytes, Trace* trace);

}  // namespace ranktap::collector
