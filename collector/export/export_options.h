// The part of a run to export, and how.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace ranktap::collector {

// roofline: as report's of the same names. Empty and 0: not given.
struct RooflineOptions {
  std::string by = {};
  int depth = -1;
  std::string device = {};
  double peak_flops = 0, peak_bandwidth = 0;
};

struct ExportOptions {
  // Nanoseconds of CLOCK_REALTIME; what overlaps the window is kept whole.
  int64_t from = std::numeric_limits<int64_t>::min();
  int64_t to = std::numeric_limits<int64_t>::max();
  bool some_steps = false;     // the run has only some of its steps: its file has more
  uint64_t split_bytes = 0;    // larger files are cut (split_export.h); 0: they are not
  int64_t min_duration = 0;    // ns; shorter slices are left out, moments are not
  bool starts_inside = false;  // of what overlaps the window only what starts in it: for pieces
  // chrome: names and steps that Holistic Trace Analysis looks for (chrome_exporter.h).
  bool hta_compat = false;
  bool ranges_as_operators = false;  // chrome: NVTX ranges are cpu_op, not user_annotation
  bool render_stages = false;        // perfetto: device work as GpuRenderStageEvent

  // parquet: the run's partition of the data set; empty: named after the run's path.
  std::string run_name = {};
  bool replace_run = false;  // parquet: instead of refusing where the data set has that run

  RooflineOptions roofline = {};

  std::string replayed_operator =
      {};  // replay: a name, or a number (replay_exporter.cc); empty: all

  bool tensor_arrows = false;  // from the operator that made a tensor to those that take it

  // Where set: gets the names of what a file that is copied says beside its profiler's own members.
  std::set<std::string>* handed_on = nullptr;

  // Both times on the clock that `from` and `to` are on.
  bool Keeps(int64_t start, int64_t end) const {
    return start < to && (starts_inside ? start : end) >= from && end - start >= min_duration;
  }
  bool KeepsMoment(int64_t time) const { return time >= from && time < to; }
  // The same window on a clock that `shift` has to be added to.
  ExportOptions Shifted(int64_t shift) const {
    ExportOptions shifted = *this;
    if (from != std::numeric_limits<int64_t>::min()) shifted.from = from - shift;
    if (to != std::numeric_limits<int64_t>::max()) shifted.to = to - shift;
    return shifted;
  }
};

}  // namespace ranktap::collector
