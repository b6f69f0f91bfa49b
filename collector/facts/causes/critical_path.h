// The chain of work that the end of the run waited for, across streams, hosts and ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/device_timeline.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct PathSegment {
  uint32_t trace = 0;
  Cause cause{};  // kCompute, kTransfer, kMemory, kDataLoading, kSync, kHost, kLatency, kDependency
  uint32_t kernel = kNone;  // Dictionary::String of the kernel, where it is one
  // When, by the rank's own clock. Loading and the host's other work that lie among each other have
  // one start and one end: `ns` is the time of each.
  int64_t start = 0, end = 0;
  int64_t ns = 0;
  uint32_t graph = kNone;  // CUPTI's id of the graph, where it is one that was traced as a whole
};

// Why work that was ready then began at its start.
inline Cause GapBefore(const DeviceSpan& span, int64_t ready) {
  return span.start - ready < kLatencyNs ? Cause::kLatency : Cause::kDependency;
}

// Keeps the work alone: its segments, 9 M of 10 M events, are made as they are read. As a list they
// took longer to write than to find.
class CriticalPath {
 public:
  CriticalPath() = default;
  explicit CriticalPath(const Run& run);

  bool empty() const { return !last_; }
  const PathSegment& last() const { return *last_; }  // of at least one
  // Calls visit(segment), the first of the run first.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (size_t i = pieces_.size(); i-- > 0;) {
      const Piece& piece = pieces_[i];
      if (piece.trace != kNone) {
        ForEachOf(piece, visit);
      } else {
        visit(others_[piece.at]);
      }
    }
  }

  // The last of the run first. `ready`: since when nothing but the device kept it from its start.
  void Reserve(size_t works) { pieces_.reserve(works); }
  void AddWork(uint32_t trace, uint32_t work, int64_t ready);
  void AddOther(const PathSegment& segment);

 private:
  struct Piece {
    int64_t ready = 0;
    uint32_t at = 0;         // of the trace's timeline
    uint32_t trace = kNone;  // kNone: `at` is of others_
  };
  template <typename Visit>
  void ForEachOf(const Piece& piece, Visit&& visit) const {
    const DeviceSpan& span = (*timelines_[piece.trace])[piece.at];
    PathSegment segment{.trace = piece.trace};
    const auto say = [&](Cause cause, int64_t start, int64_t end) {
      if (end <= start) return;
      segment.cause = cause, segment.start = start, segment.end = end, segment.ns = end - start;
      visit(std::as_const(segment));
    };
    say(GapBefore(span, piece.ready), piece.ready, span.start);
    if (span.table == DeviceSpan::Table::kKernel) segment.kernel = span.name;
    say(span.kind == WorkKind::kMemory          ? Cause::kMemory
        : span.kind == WorkKind::kCommunication ? Cause::kTransfer
                                                : Cause::kCompute,
        span.start, span.end);
  }

  std::vector<const DeviceSpans*> timelines_;  // by trace
  std::vector<Piece> pieces_;
  std::vector<PathSegment> others_;
  std::optional<PathSegment> last_;
};

// From the last work to the first, each piece followed by what it waited for:
//   a collective    was transferred since its last member arrived; the path goes on there, on that
//                   rank (its own wait is not on the path)
//   other work      waited for the work before it on its stream; else, where that ended over 5 us
//                   before and other work of the rank ended later, for that; else for its launch,
//                   where the launch came after both
//   a launch        (one that takes 30 us or longer launches as it returns: HandedOver) waited for
//   the host since the last call that waited for the device, and that
//                   call for the work that it waited for (DeviceOrder)
// No clocks of two ranks are compared. Its length is what the run would take if nothing on it were
// shortened; only what is on it is worth shortening. Worked out once and kept in the run's memo.
const CriticalPath& FindCriticalPath(const Run& run);

}  // namespace ranktap::collector
