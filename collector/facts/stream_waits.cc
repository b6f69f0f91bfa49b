#include "collector/facts/stream_waits.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collector/facts/sync_calls.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kStreamWaitEvent = 2;  // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT

using Waits = std::map<uint32_t, std::vector<StreamWait>>;

std::unordered_map<uint64_t, uint32_t> StreamsByHandle(const Trace& trace) {
  // CUDA's own handles: legacy, per thread.
  std::unordered_map<uint64_t, uint32_t> streams;
  for (const proto::ResourceEvent& change : trace.resources) {
    if (change.change != proto::ResourceChange::kStreamCreated) continue;
    streams[change.handle] = static_cast<uint32_t>(change.id);
  }
  return streams;
}

void AddCalls(const Trace& trace, Waits* waits) {
  const EventCalls& calls = trace.event_calls;
  if (calls.size() == 0) return;
  const std::unordered_map<uint64_t, uint32_t> streams = StreamsByHandle(trace);
  const auto stream_of = [&](size_t i) {
    const auto found = streams.find(calls.stream.At(i));
    return found == streams.end() ? kNone : found->second;
  };
  std::unordered_map<uint64_t, uint32_t> recorded_on;  // by event
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string_view name = trace.dictionary.Api(calls.api[i]).name;
    if (name.find("EventRecord") != name.npos) recorded_on[calls.event.At(i)] = stream_of(i);
    if (name.find("StreamWaitEvent") == name.npos) continue;
    const auto record = recorded_on.find(calls.event.At(i));
    if (const uint32_t stream = stream_of(i); stream != kNone) {
      (*waits)[stream].push_back(
          {calls.start[i], record == recorded_on.end() ? kNone : record->second});
    }
  }
}

void AddRecords(const Trace& trace, Waits* waits) {
  const Syncs& syncs = trace.syncs;
  std::unordered_map<uint32_t, int64_t> called;  // by correlation
  for (size_t i = 0; i < syncs.size(); ++i) {
    if (syncs.type[i] == kStreamWaitEvent) called.emplace(syncs.correlation[i], syncs.start[i]);
  }
  if (called.empty()) return;
  for (const auto& [row, correlation] : CallsOfSyncRecords(trace)) {
    const auto found = called.find(correlation);
    if (found != called.end()) found->second = trace.api_calls.start[row];
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> records;  // by event and correlation: stream
  for (const proto::CudaEventEvent& event : trace.cuda_events) {
    records[{event.cuda_event, event.correlation}] = event.stream;
  }
  for (size_t i = 0; i < syncs.size(); ++i) {
    if (syncs.type[i] != kStreamWaitEvent || syncs.stream[i] == kNone) continue;
    // Files of torch.profiler name the other stream.
    uint32_t on = syncs.record_stream.At(i) == 0 ? kNone : syncs.record_stream.At(i) - 1;
    const auto after = records.lower_bound({syncs.cuda_event[i], syncs.correlation[i]});
    if (after != records.begin() && std::prev(after)->first.first == syncs.cuda_event[i]) {
      on = std::prev(after)->second;
    }
    (*waits)[syncs.stream[i]].push_back({called[syncs.correlation[i]], on});
  }
}

}  // namespace

std::map<uint32_t, std::vector<StreamWait>> StreamWaits(const Trace& trace) {
  Waits waits;
  AddCalls(trace, &waits);
  AddRecords(trace, &waits);
  for (auto& [stream, of] : waits) {
    std::sort(of.begin(), of.end(), [](const StreamWait& a, const StreamWait& b) {
      return std::pair(a.called, a.on) < std::pair(b.called, b.on);
    });
  }
  return waits;
}

std::optional<StreamWait> WaitBetween(const std::map<uint32_t, std::vector<StreamWait>>& waits,
                                      uint32_t stream, int64_t since, int64_t until) {
  const auto of = waits.find(stream);
  if (of == waits.end()) return std::nullopt;
  const auto after =
      std::upper_bound(of->second.begin(), of->second.end(), until,
                       [](int64_t time, const StreamWait& wait) { return time < wait.called; });
  if (after == of->second.begin() || std::prev(after)->called < since) return std::nullopt;
  return *std::prev(after);
}

}  // namespace ranktap::collector
