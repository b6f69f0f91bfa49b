// What hardware counters measured of single kernels, as another profiler wrote it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/trace/column.h"
#include "collector/trace/packed_column.h"

namespace ranktap::collector {

struct CounterReading {
  uint32_t metric = 0;  // Dictionary::String, as CUPTI calls it: "dram__bytes.sum"
  double value = 0;
};

// A row for each kernel that was measured, by start. Such a kernel runs alone, and often several
// times: its span is no time of the program.
struct KernelCounters {
  TimeColumn start, end;
  Column<uint32_t> name;  // Dictionary::String; some profilers do not know it
  std::vector<std::vector<CounterReading>> readings;
  size_t size() const { return start.size(); }
};

}  // namespace ranktap::collector
