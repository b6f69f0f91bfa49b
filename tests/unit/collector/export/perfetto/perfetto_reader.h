// A strict reader of Perfetto traces: what trace_processor would forgive or count is an error here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ranktap::collector {

struct PerfettoSlice {
  std::string process, track, category, name;
  int64_t start = 0, end = 0;
  std::map<std::string, std::string> arguments;
};
struct PerfettoArrow {
  size_t from = 0, to = 0;  // indices of slices
};
struct PerfettoCount {
  std::string process, track;
  int64_t time = 0, value = 0;
};

struct PerfettoContent {
  std::vector<std::string> errors;
  std::vector<PerfettoSlice> slices;  // instants too, end == start
  std::vector<PerfettoArrow> arrows;
  std::vector<PerfettoCount> counts;
};

PerfettoContent ReadPerfetto(const std::string& bytes);

}  // namespace ranktap::collector
