
#include <algorithm>
#include <cmath>
#include <map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/magnitude_counts.h"
#include "collector/facts/stream_numbers.h"
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

// One stream's work: when each piece of work was launched, and when it began. By time, once sorted.
struct Waiting {
  std::vector<int64_t> launched, began;
  bool is_sorted = true;  // so far; always where one thread launches in order

  void Add(int64_t launch, int64_t begin) {
    is_sorted &= launched.empty() || (launched.back() <= launch && began.back() <= begin);
    launched.push_back(launch);
    began.push_back(begin);
  }
  void Sort() {
    if (!is_sorted) std::ranges::sort(launched), std::ranges::sort(began);
  }
};

struct QueueTimes {
  int64_t full_ns = 0, span_ns = 0;
};

// Calls visit(length) after each launch and each begin, by time.
template <typename Visit>
QueueTimes Follow(const Waiting& waiting, Visit&& visit) {
  const std::vector<int64_t>& launches = waiting.launched;
  const std::vector<int64_t>& begins = waiting.began;
  const size_t count = launches.size();
  const int64_t first = std::min(launches[0], begins[0]);
  QueueTimes times;
  int64_t length = 0, since = first;
  const auto change = [&](int64_t time, int64_t by) {
    times.full_ns += length >= kFull ? time - since : 0;
    since = time;
    length += by;
    visit(length);
  };
  size_t launched = 0, began = 0;
  while (launched < count && began < count) {
    // At equal times launches come first: a queue is never shorter than empty.
    const bool is_launch = launches[launched] <= begins[began];
    const int64_t time = is_launch ? launches[launched] : begins[began];
    launched += is_launch ? 1 : 0;
    began += is_launch ? 0 : 1;
    change(time, is_launch ? 1 : -1);
  }
  while (began < count) change(begins[began++], -1);
  // HTA's selection may let work begin before its launch: the launches behind the last begin.
  while (launched < count) change(launches[launched++], 1);
  times.span_ns = since - first;
  return times;
}

// How often a queue had each length; in HTA's selection it may be below 0.
class LengthCounts {
 public:
  void Add(int64_t length) {
    std::vector<uint32_t>& counts = length < 0 ? below_ : counts_;
    const auto at = static_cast<size_t>(length < 0 ? -length : length);
    if (at >= counts.size()) counts.resize(2 * at + 1);
    ++counts[at];
  }
  // Visits the lengths in their order.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (size_t at = below_.size(); at-- > 0;) {
      if (below_[at] > 0) visit(-static_cast<int64_t>(at), below_[at]);
    }
    for (size_t at = 0; at < counts_.size(); ++at) {
      if (counts_[at] > 0) visit(static_cast<int64_t>(at), counts_[at]);
    }
  }

 private:
  std::vector<uint32_t> counts_, below_;
};

// As Describe() does of the single lengths, of which there are twice as many as launches.
Description DescribeLengths(const Waiting& waiting, const LengthCounts& counts) {
  Description of;
  double sum = 0;
  std::vector<std::pair<size_t, double>> ends;  // of each length: how many are no longer
  counts.ForEach([&](int64_t length, uint32_t times) {
    of.count += times;
    sum += static_cast<double>(length * int64_t{times});
    ends.emplace_back(of.count, static_cast<double>(length));
  });
  of.mean = sum / static_cast<double>(of.count);
  double squares = 0;
  const auto add_square = [&](int64_t length, uint32_t times) {
    const double from_mean = static_cast<double>(length) - of.mean;
    squares += times * (from_mean * from_mean);
  };
  // The last digit hangs on the order of the sum: of few it is that of the list.
  if (of.count < MagnitudeCounts::kMany) {
    Follow(waiting, [&](int64_t length) { add_square(length, 1); });
  } else {
    counts.ForEach(add_square);
  }
  of.deviation = std::sqrt(squares / static_cast<double>(of.count - 1));
  of.min = ends.front().second;
  of.max = ends.back().second;
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(of.count - 1);
    const auto rank = static_cast<size_t>(at);
    const auto holds = [](size_t r, const auto& end) { return r < end.first; };
    const auto low = std::upper_bound(ends.begin(), ends.end(), rank, holds);
    const auto high = std::upper_bound(low, ends.end(), std::min(rank + 1, of.count - 1), holds);
    return low->second + (high->second - low->second) * (at - static_cast<double>(rank));
  };
  of.quarter = quantile(0.25);
  of.median = quantile(0.5);
  of.three_quarters = quantile(0.75);
  return of;
}

using QueueStreams = std::map<StreamNumbers::Stream, Waiting>;  // by device and stream

QueueStreams CollectChanges(const Trace& trace, bool as_hta) {
  std::vector<bool> counts(trace.dictionary.apis() + 1);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaEnqueue(trace.dictionary.Api(id).name);
  }
  QueueStreams streams;
  if (!as_hta) {
    for (const StreamWork& work : WorkOfStreams(trace)) {
      Waiting& waiting = streams[{work.device, work.stream}];
      waiting.launched.reserve(work.pieces());
      waiting.began.reserve(work.pieces());
    }
  }
  const ApiCalls& calls = trace.api_calls;
  std::vector<bool> seen(as_hta ? 0 : calls.size());  // a graph is one launch of many kernels
  Waiting* last = nullptr;
  StreamNumbers::Stream last_stream;
  for (const DeviceSpan& span : as_hta ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
    if (span.launch == kNone) continue;
    if (as_hta) {
      if (!counts[std::min<size_t>(calls.api[span.launch], counts.size() - 1)]) continue;
    } else {
      std::vector<bool>::reference is_seen = seen[span.launch];
      if (is_seen) continue;
      is_seen = true;
    }
    const StreamNumbers::Stream stream = {as_hta ? 0 : span.device, span.stream};
    if (last == nullptr || stream != last_stream) {
      last = &streams[stream];
      last_stream = stream;
    }
    const int64_t launched = calls.start[span.launch];
    // By a device's clock, which is off by microseconds, work may begin before its launch.
    last->Add(launched, as_hta ? span.start : std::max(span.start, launched));
  }
  std::erase_if(streams, [](const auto& stream) { return stream.second.launched.empty(); });
  for (auto& [stream, waiting] : streams) waiting.Sort();
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
    for (const auto& [stream, waiting] : CollectChanges(trace, options.hta_compat)) {
      LengthCounts counts;
      const QueueTimes times = Follow(waiting, [&counts](int64_t length) { counts.Add(length); });
      rows.push_back({&trace, stream.first, stream.second, times.full_ns, times.span_ns,
                      DescribeLengths(waiting, counts)});
    }
  }
  Table table = TableOf("Launched work waiting on each stream", kQueueColumns, rows);
  if (table.rows.empty()) table.notes.push_back("no work was joined to its launch");
  return table;
}

}  // namespace ranktap::collector
