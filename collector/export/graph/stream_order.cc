#include "collector/export/graph/stream_order.h"

#include <algorithm>

namespace ranktap::collector {

StreamOrder::StreamOrder(const Trace& trace) : trace_(trace), waits_(StreamWaits(trace)) {
  AddRecordedWaits();
}

std::vector<uint32_t> StreamOrder::Add(const DeviceSpan& span, uint32_t node, int64_t end) {
  std::vector<uint32_t> before;
  std::vector<Work>& stream = work_[{span.device, span.stream}];
  if (!stream.empty()) before.push_back(stream.back().node);
  AddAwaited(span, &before);
  const int64_t launched = span.launch == kNone ? span.start : trace_.api_calls.start[span.launch];
  stream.push_back({.node = node, .launched = launched, .end = end});
  return before;
}

// cudaStreamWaitEvent where the record names the other stream: files of torch.profiler.
void StreamOrder::AddRecordedWaits() {
  constexpr uint8_t kStreamWaitEvent = 2;  // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_...
  const Syncs& syncs = trace_.syncs;
  for (size_t i = 0; i < syncs.size(); ++i) {
    const uint32_t on = syncs.record_stream.At(i);
    if (syncs.type[i] != kStreamWaitEvent || on == 0 || syncs.stream[i] == kNone) continue;
    waits_[syncs.stream[i]].push_back({syncs.start[i], on - 1});
  }
  for (auto& [stream, of] : waits_) std::ranges::stable_sort(of, {}, &StreamWait::called);
}

// Waits that were called since the launch of the work before on the stream.
void StreamOrder::AddAwaited(const DeviceSpan& span, std::vector<uint32_t>* before) {
  const auto of = waits_.find(span.stream);
  if (of == waits_.end() || span.launch == kNone) return;
  const int64_t launched = trace_.api_calls.start[span.launch];
  size_t& next = next_wait_[{span.device, span.stream}];
  for (; next < of->second.size() && of->second[next].called <= launched; ++next) {
    const StreamWait& wait = of->second[next];
    const auto other = work_.find({span.device, wait.on});
    if (other == work_.end()) continue;
    // The last there that was launched before the wait and had ended by now.
    const auto& work = other->second;
    const auto last = std::find_if(work.rbegin(), work.rend(), [&](const Work& one) {
      return one.launched <= wait.called && one.end <= span.start;
    });
    if (last != work.rend()) before->push_back(last->node);
  }
}

}  // namespace ranktap::collector
