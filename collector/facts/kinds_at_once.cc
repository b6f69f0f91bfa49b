#include "collector/facts/kinds_at_once.h"

namespace ranktap::collector {

KindsAtOnce KindsAtOnceOf(const DeviceSpans& spans) {
  KindsAtOnce times;
  SweepKinds(spans, kAllKinds, [&times](KindSet set, int64_t start, int64_t end) {
    if (!times.any) times.first = start;
    times.any = true;
    times.last = end;
    times.ns[set] += end - start;
  });
  return times;
}

const KindsAtOnce& KindsAtOnceOf(const Trace& trace) {
  return trace.memo.Get<KindsAtOnce>([&trace] { return KindsAtOnceOf(DeviceTimeline(trace)); });
}

}  // namespace ranktap::collector
