// Why a loader with workers comes late: the line of the dataset that its workers spend most of
// their time at.
#pragma once

#include <cstdint>
#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

struct LoaderLine {
  std::string text;     // HostSamples::Describe; empty: no line has more than half of it
  int64_t ns = 0;       // at that line, of all workers in the counted steps
  int64_t busy_ns = 0;  // that they made batches in
  // The file or folder that they were met reading, for how long, where that is a quarter of
  // `busy_ns`; and the line that has more than half of it.
  std::string read_files, read_line;
  int64_t read_ns = 0;
  uint32_t workers = 0;
  uint32_t wanted = 0;  // that would hide it; 0: as many or fewer, or the CPUs are too few
  // The one that is busy for longer than the median of the others by half; -1: none.
  int late_worker = -1;
  int64_t late_ns = 0, median_ns = 0;
  // What all of them spent on starting, where that is a quarter of their time; and the line that
  // has more than half of it.
  int64_t starting_ns = 0, all_ns = 0;
  std::string starting_text;
  int64_t pinning_ns = 0;  // of the pin-memory thread, where that is half of its time
};

// How full the loader's queue was when batches were asked for, in the counted steps.
struct LoaderQueue {
  size_t asked = 0, empty = 0;  // 0: there is no such queue, or nobody knows
};
LoaderQueue QueueOfLoader(const Trace& trace, const RankWaterfall& waterfall);

// workers 0: there are none, or nobody looked at them.
LoaderLine FindLoaderLine(const Trace& trace, const RankWaterfall& waterfall);

}  // namespace ranktap::collector
