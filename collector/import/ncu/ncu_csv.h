// What `ncu --csv` printed of kernels' counters: a row a reading ("Metric Name", "Metric Unit",
// "Metric Value"), or with --page raw a row a kernel, below one with the units.
//
//   ==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 9 passes      no row: a line of ncu's own
//   "ID","Process ID",...,"Kernel Name",...,"dram__bytes.sum","gpu__time_duration.sum"
//   "","",...,"",...,"Mbyte","us"                                     the units
//   "0","19963",...,"saxpy(float *)",...,"12.58","1,205.00"           the first kernel
//
// Numbers are written as the locale of who ran ncu wants: 1,205.00 or 1.205,00 or 1 205,00.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/read_kernels.h"

namespace ranktap::collector {

struct NcuFile {
  std::vector<ReadKernel> kernels;  // in the order in which they ran
  // Of one process: the one with most kernels, where the file has several.
  size_t processes = 0, left_out = 0;  // kernels of the others
  size_t absent = 0;                   // readings that ncu could not take, "n/a"
  // Numbers such as 98.304 alone: nothing in the file says whether the point is a thousands'.
  bool is_ambiguous = false;
};

// Keeps the metrics that `is_wanted` takes. A failure names the line: "12: ...".
Result<NcuFile> ParseNcu(std::string_view text, bool (*is_wanted)(std::string_view metric));

}  // namespace ranktap::collector
