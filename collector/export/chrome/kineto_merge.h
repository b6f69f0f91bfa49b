// Joins Kineto JSON files of several ranks into one, event by event: memory does not grow with the
// files, and what we do not know is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/export/output_file.h"
#include "collector/file/result.h"

namespace ranktap::collector {

struct MergeInput {
  std::string path;
  std::string label;              // "rank 3"
  int64_t base_ns = 0;            // what its times count from, CLOCK_REALTIME; 0: they are absolute
  std::optional<uint32_t> rank;   // as the file says
  std::string device_properties;  // JSON
  std::vector<std::string> damage;  // found while it was read
};

// Reads what a merge must know before its first event: rank, base of the times, devices. Reads the
// file to its end where the base comes after the events.
Result<MergeInput> DescribeMergeInput(const std::string& path);

// Writes all events of the inputs, in their order. Pids and the ids of arrows and async events get
// a number of their own in each input, so that nothing of one rank joins anything of another;
// process names get the label in front, thread names stay as they are, times count from the
// earliest base.
void MergeKineto(std::vector<MergeInput>* inputs, OutputFile* file);

}  // namespace ranktap::collector
