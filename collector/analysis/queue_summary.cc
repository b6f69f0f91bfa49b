#include "collector/analysis/queue_summary.h"

#include <algorithm>
#include <map>

#include "collector/analysis/cells.h"
#include "collector/analysis/describe.h"
#include "collector/analysis/device_timeline.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kFull = 1024;  // launches a stream's queue holds before the next one blocks

bool IsHtaEnqueue(std::string_view api) {
  for (const std::string_view name :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
        "cudaMemcpyAsync", "cudaMemsetAsync", "hipLaunchKernel", "hipExtModuleLaunchKernel",
        "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream"}) {
    if (api == name) return true;
  }
  return false;
}

struct Change {
  int64_t time;
  int32_t by;
};

struct StreamQueue {
  std::vector<double> lengths;
  int64_t full_ns = 0, span_ns = 0;
};

StreamQueue Follow(std::vector<Change> changes) {
  // At equal times launches come first: a queue is never shorter than empty.
  const auto before = [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.by > b.by;
  };
  // Launches in one sorted row, starts in another, where one thread launches in order.
  const auto starts = std::stable_partition(changes.begin(), changes.end(),
                                            [](const Change& change) { return change.by > 0; });
  for (const auto& [from, to] :
       {std::pair(changes.begin(), starts), std::pair(starts, changes.end())}) {
    if (!std::is_sorted(from, to, before)) std::stable_sort(from, to, before);
  }
  std::inplace_merge(changes.begin(), starts, changes.end(), before);
  StreamQueue queue;
  int64_t length = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    length += changes[i].by;
    queue.lengths.push_back(static_cast<double>(length));
    if (i + 1 < changes.size() && length >= kFull) {
      queue.full_ns += changes[i + 1].time - changes[i].time;
    }
  }
  queue.span_ns = changes.back().time - changes.front().time;
  return queue;
}

using Streams = std::map<std::pair<uint32_t, uint32_t>, std::vector<Change>>;

Streams CollectChanges(const Trace& trace, bool as_hta) {
  std::vector<bool> counts(trace.dictionary.apis() + 1, !as_hta);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaEnqueue(trace.dictionary.Api(id).name);
  }
  Streams streams;
  const ApiCalls& calls = trace.api_calls;
  std::vector<bool> seen(as_hta ? 0 : calls.size());  // a graph is one launch of many kernels
  for (const DeviceSpan& span : as_hta ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
    if (span.launch == kNone) continue;
    if (!counts[std::min<size_t>(calls.api[span.launch], counts.size() - 1)]) continue;
    if (!as_hta && seen[span.launch]) continue;
    if (!as_hta) seen[span.launch] = true;
    std::vector<Change>& changes = streams[{as_hta ? 0 : span.device, span.stream}];
    changes.push_back({calls.start[span.launch], 1});
    changes.push_back({span.start, -1});
  }
  return streams;
}

}  // namespace

Table TabulateQueue(const Run& run, const AnalysisOptions& options) {
  Table table{.name = "queue",
              .title = "Launched work waiting on each stream",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kCount, true},
                          {"stream", Unit::kCount},
                          {"count", Unit::kCount}}};
  AddDescriptionColumns("", Unit::kCount, &table.columns);
  table.columns.push_back({"full_ns", Unit::kNs});
  table.columns.push_back({"full_percent", Unit::kPercent, true});
  for (const Trace& trace : run.traces) {
    for (auto& [stream, changes] : CollectChanges(trace, options.hta_compat)) {
      StreamQueue queue = Follow(std::move(changes));
      std::vector<Cell> row = {RankCell(trace), int64_t{stream.first}, int64_t{stream.second},
                               static_cast<int64_t>(queue.lengths.size())};
      AddDescriptionCells(Describe(std::move(queue.lengths)), Unit::kCount, &row);
      row.push_back(queue.full_ns);
      row.push_back(Percent(queue.full_ns, queue.span_ns));
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.empty()) table.notes.push_back("no work was joined to its launch");
  return table;
}

}  // namespace ranktap::collector
