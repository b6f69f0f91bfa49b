#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Places in `Trace::damage`; a file can be damaged everywhere.
inline constexpr size_t kDamageListed = 100;
inline constexpr size_t kMostWriters = 0xffff;
// Bytes of stacks for a byte of the file, up to 30 in real memory snapshots: frames are shared, and
// a hostile file shares one forever.
inline constexpr size_t kStackTextPerByte = 32, kLeastStackText = 16u << 20;

// Every importer ends with this: it sorts the tables (rows of equal start in an order that is not
// the file's), joins work to its launches and operators, finds the first and the last moment, gives
// reserved memory back.
void FinishTrace(Trace* trace);

// The model's statements about a file that was read to its end. `writer`: the program that wrote
// it.
void CloseTrace(const std::string& writer, uint64_t file_bytes, Trace* trace);

}  // namespace ranktap::collector
