#include "collector/facts/backlog.h"

#include <algorithm>

#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

bool HasUnknown(const DeviceWork& work) {
  return std::find(work.launch.begin(), work.launch.end(), kNone) != work.launch.end();
}

Backlog FindBacklog(const Trace& trace) {
  if (!HasUnknown(trace.kernels) && !HasUnknown(trace.copies) && !HasUnknown(trace.memsets)) {
    return {};
  }
  const StepList& steps = DetectSteps(trace);
  Backlog backlog;
  if (steps.on_device || steps.list.empty()) return backlog;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> launched;  // when the host did, of that work
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    const std::pair stream(span.device, span.stream);
    if (span.launch == kNone || !backlog.first_known.emplace(stream, span.start).second) continue;
    launched[stream] = trace.api_calls.start[span.launch];
  }
  std::erase_if(backlog.first_known,
                [&](const auto& stream) { return launched[stream.first] >= steps.list[0].end; });
  return backlog;
}

}  // namespace

const Backlog& BacklogOf(const Trace& trace) {
  return trace.memo.Get<Backlog>([&trace] { return FindBacklog(trace); });
}

}  // namespace ranktap::collector
