// Slices of one thread or stream, laid onto tracks where slices nest. Slices that overlap without
// nesting (kernels of one stream by a jitter of the clock, ranges of two NVTX domains) go onto a
// further track beside the first.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "collector/export/perfetto/perfetto_packets.h"

namespace ranktap::collector {

class NestedTracks {
 public:
  // Makes the n-th track when it is first needed; its first slice begins at the time given.
  using MakeTrack = std::function<PerfettoTrack*(size_t n, int64_t start_ns)>;

  NestedTracks(PerfettoPackets* packets, MakeTrack make)
      : packets_(packets), make_(std::move(make)) {}

  // The track where a slice of these times may begin now; the caller writes its beginning and never
  // its end. Slices come by their start, of those with one start the longest first.
  [[gnu::always_inline]] PerfettoTrack* Open(int64_t start, int64_t end) {
    for (Row& row : rows_) {
      Close(&row, start);
      if (end > row.end) continue;
      if (row.open == row.outer_ends.size()) row.outer_ends.resize(row.open + 8);
      row.outer_ends[row.open++] = row.end;
      row.end = end;
      return row.track;
    }
    rows_.push_back({make_(rows_.size(), start), end, {kNoSlice}, 1});
    return rows_.back().track;
  }
  // The track that holds what happens at one moment.
  PerfettoTrack* At(int64_t time) {
    if (rows_.empty()) rows_.push_back({make_(0, time), kNoSlice, {}});
    Close(&rows_.front(), time);
    return rows_.front().track;
  }
  // Ends what is open still.
  void Finish() {
    for (Row& row : rows_) Close(&row, INT64_MAX);
  }

 private:
  static constexpr int64_t kNoSlice = INT64_MAX;
  struct Row {
    PerfettoTrack* track;
    int64_t end;  // of the innermost open slice; kNoSlice: none is open
    // kNoSlice, and of the slices around that one; then some that were.
    std::vector<int64_t> outer_ends;
    size_t open = 0;
  };

  [[gnu::always_inline]] void Close(Row* row, int64_t time) {
    while (row->end <= time && row->open != 0) {
      packets_->End(row->track, row->end);
      row->end = row->outer_ends[--row->open];
    }
  }

  PerfettoPackets* packets_;
  MakeTrack make_;
  std::vector<Row> rows_;
};

}  // namespace ranktap::collector
