
#include <algorithm>
#include <map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/description_columns.h"
#include "collector/report/reports.h"

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

// One stream's work: when each piece of work was launched, and when it began.
struct Waiting {
  std::vector<int64_t> launched, began;
};

struct StreamQueue {
  std::vector<double> lengths;
  int64_t full_ns = 0, span_ns = 0;
};

StreamQueue Follow(Waiting waiting) {
  // Sorted already where one thread launches in order.
  for (std::vector<int64_t>* const times : {&waiting.launched, &waiting.began}) {
    if (!std::is_sorted(times->begin(), times->end())) std::sort(times->begin(), times->end());
  }
  StreamQueue queue;
  queue.lengths.reserve(2 * waiting.launched.size());
  const size_t count = waiting.launched.size();
  const int64_t first = std::min(waiting.launched[0], waiting.began[0]);
  int64_t length = 0, since = first;
  for (size_t launched = 0, began = 0; began < count;) {
    // At equal times launches come first: a queue is never shorter than empty.
    const bool is_launch = launched < count && waiting.launched[launched] <= waiting.began[began];
    const int64_t time = is_launch ? waiting.launched[launched++] : waiting.began[began++];
    if (length >= kFull) queue.full_ns += time - since;
    length += is_launch ? 1 : -1;
    since = time;
    queue.lengths.push_back(static_cast<double>(length));
    // HTA's selection may let work begin before its launch: the launches behind the last begin.
    if (began == count) {
      for (; launched < count; ++launched) {
        if (length >= kFull) queue.full_ns += waiting.launched[launched] - since;
        since = waiting.launched[launched];
        queue.lengths.push_back(static_cast<double>(++length));
      }
    }
  }
  queue.span_ns = since - first;
  return queue;
}

using QueueStreams = std::map<std::pair<uint32_t, uint32_t>, Waiting>;

QueueStreams CollectChanges(const Trace& trace, bool as_hta) {
  std::vector<bool> counts(trace.dictionary.apis() + 1, !as_hta);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaEnqueue(trace.dictionary.Api(id).name);
  }
  QueueStreams streams;
  const ApiCalls& calls = trace.api_calls;
  std::vector<bool> seen(as_hta ? 0 : calls.size());  // a graph is one launch of many kernels
  Waiting* last = nullptr;
  std::pair<uint32_t, uint32_t> last_stream;
  for (const DeviceSpan& span : as_hta ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
    if (span.launch == kNone) continue;
    if (!counts[std::min<size_t>(calls.api[span.launch], counts.size() - 1)]) continue;
    if (!as_hta && seen[span.launch]) continue;
    if (!as_hta) seen[span.launch] = true;
    const std::pair<uint32_t, uint32_t> stream = {as_hta ? 0 : span.device, span.stream};
    if (last == nullptr || stream != last_stream) {
      last = &streams[stream];
      last_stream = stream;
    }
    const int64_t launched = calls.start[span.launch];
    last->launched.push_back(launched);
    // By a device's clock, which is off by microseconds, work may begin before its launch.
    last->began.push_back(as_hta ? span.start : std::max(span.start, launched));
  }
  return streams;
}

struct QueueRow {
  const Trace* trace;
  uint32_t device, stream;
  int64_t full_ns, span_ns;
  Description length;
};

const ColumnsOf<QueueRow> kQueueColumns = JoinedColumns<QueueRow>({
    {
        {"rank", Unit::kCount, kRankMeaning,
         [](const QueueRow& row) { return RankCell(*row.trace); }},
        {"device", Unit::kCount, kDeviceMeaning,
         [](const QueueRow& row) { return int64_t{row.device}; }, Shown::kDetail},
        {"stream", Unit::kCount, "The stream, as CUDA numbers it.",
         [](const QueueRow& row) { return StreamNumber(row.stream); }},
        {"count", Unit::kCount,
         "The launches and begins of work; the table describes the queue's length after each.",
         [](const QueueRow& row) { return static_cast<int64_t>(row.length.count); }},
    },
    DescriptionColumns<QueueRow, &QueueRow::length, Unit::kCount>("", "lengths"),
    {
        {"full_ns", Unit::kNs,
         "The time with 1,024 or more launches in the queue, when the next launch blocks.",
         [](const QueueRow& row) { return row.full_ns; }},
        {"full_percent", Unit::kPercent, "That time as a share of the stream's span.",
         [](const QueueRow& row) { return Percent(row.full_ns, row.span_ns); }, Shown::kDetail},
    },
});

}  // namespace

Table TabulateQueue(const Run& run, const ReportOptions& options) {
  std::vector<QueueRow> rows;
  for (const Trace& trace : run.traces) {
    for (auto& [stream, waiting] : CollectChanges(trace, options.hta_compat)) {
      StreamQueue queue = Follow(std::move(waiting));
      rows.push_back({&trace, stream.first, stream.second, queue.full_ns, queue.span_ns,
                      Describe(std::move(queue.lengths))});
    }
  }
  Table table = TableOf("Launched work waiting on each stream", kQueueColumns, rows);
  if (table.rows.empty()) table.notes.push_back("no work was joined to its launch");
  return table;
}

}  // namespace ranktap::collector
