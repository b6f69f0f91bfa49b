// Everything that occupied a rank's devices, in one list: what the analyses of GPU time begin with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/facts/device_spans.h"
#include "collector/facts/numbers/interval_union.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Kernels, copies and memsets, and graphs that were traced as a whole, by start. Work without times
// is left out. A kernel's record, its name and the operator that launched it say its kind
// (communication_kernels.h). Worked out once and kept in the trace's memo.
const DeviceSpans& DeviceTimeline(const Trace& trace);

// What ran on one stream.
struct StreamWork {
  uint32_t device = 0, stream = 0;
  struct OfKind {
    size_t pieces = 0;
    int64_t ns = 0;  // added up
  };
  std::array<OfKind, 4> kinds;  // by WorkKind
  int64_t last_end = INT64_MIN;
  int64_t longest_ns = 0;  // of one piece
  const OfKind& Of(WorkKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  size_t pieces() const {
    size_t all = 0;
    for (const OfKind& kind : kinds) all += kind.pieces;
    return all;
  }
};
// Of all streams, by device and stream; counted while the timeline is made.
const std::vector<StreamWork>& WorkOfStreams(const Trace& trace);
bool Communicates(const Trace& trace);  // on one of them

// The same as Holistic Trace Analysis 0.6.1 selects and classifies it (docs/commands/report.md): by
// name patterns, with synchronisation records and operators that name a stream, and without what
// the last ProfilerStep launched when there are several.
const DeviceSpans& HtaDeviceTimeline(const Trace& trace);
// The start of the last ProfilerStep where HTA leaves out what follows it; INT64_MAX: nowhere.
int64_t HtaCutoff(const Trace& trace);

// The row of the operator that launched it; kNone: none is known.
uint32_t LaunchingOperator(const Trace& trace, const DeviceSpan& span);
// What a copy or a memset moved; 0: it is neither.
uint64_t BytesMoved(const Trace& trace, const DeviceSpan& span);

// As Kineto names it: a kernel's readable name, "Memcpy HtoD (Pageable -> Device)", "Stream Sync".
std::string NameOf(const Trace& trace, const DeviceSpan& span);

// Intervals of the spans of one kind (or of all), merged where they touch, by start.
std::vector<Interval> MergedIntervals(const DeviceSpans& spans);
std::vector<Interval> MergedIntervals(const DeviceSpans& spans, WorkKind kind);

// How many pieces of its work communicate.
inline size_t CommunicationOf(const Trace& trace) {
  size_t pieces = 0;
  for (const StreamWork& stream : WorkOfStreams(trace)) {
    pieces += stream.Of(WorkKind::kCommunication).pieces;
  }
  return pieces;
}

}  // namespace ranktap::collector
