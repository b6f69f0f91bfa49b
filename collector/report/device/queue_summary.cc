
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

// A queue's length over time.
struct Followed {
  int64_t first = INT64_MAX, since = 0, length = 0, full_ns = 0;

  void Change(int64_t time, int64_t by) {
    if (first == INT64_MAX) first = since = time;
    full_ns += length >= kFull ? time - since : 0;
    since = time;
    length += by;
  }
};

// One stream's work: when each piece was launched, and when it began. Both come by time where one
// thread launches in order: once there are many, only what waits is held.
class StreamQueue {
 public:
  // `may_let_go`: each piece begins at its launch or later.
  explicit StreamQueue(bool may_let_go) : may_let_go_(may_let_go) {}

  void Add(int64_t launch, int64_t begin) {
    if (launch < last_launch_ || begin < last_begin_) is_sorted_ = false;
    last_launch_ = launch, last_begin_ = begin;
    began_.push_back(begin);
    if (lets_go_) return AddAtOnce(launch);
    launched_.push_back(launch);
    if (launched_.size() == kHeld && may_let_go_ && is_sorted_) LetGo();
  }
  // Work came before some that is gone: all of it must be added again, and held.
  bool is_wrong() const { return lets_go_ && !is_sorted_; }

  struct Times {
    int64_t full_ns = 0, span_ns = 0;
    Description length;  // after each launch and each begin
  };
  Times Take() {
    if (!is_sorted_) std::ranges::sort(launched_), std::ranges::sort(began_);
    Follow(gone_, &followed_, [this](int64_t length) { counts_.Add(length); });
    return {followed_.full_ns, followed_.since - followed_.first, DescribeLengths()};
  }

 private:
  // Begins before it come first. At equal times launches do: a queue is never shorter than empty.
  void AddAtOnce(int64_t launch) {
    while (gone_ < began_.size() && began_[gone_] < launch) Count(began_[gone_++], -1);
    Count(launch, 1);
    if (gone_ < kHeld) return;
    began_.erase(began_.begin(), began_.begin() + static_cast<ptrdiff_t>(gone_));
    gone_ = 0;
  }
  void Count(int64_t time, int64_t by) {
    followed_.Change(time, by);
    counts_.Add(followed_.length);
  }
  void LetGo() {
    lets_go_ = true;
    for (const int64_t launch : std::exchange(launched_, {})) AddAtOnce(launch);
  }
  // All that is held, but for the first begins. Calls visit(length) after each launch and begin.
  template <typename Visit>
  void Follow(size_t began, Followed* to, Visit&& visit) const {
    size_t launched = 0;
    const size_t launches = launched_.size(), begins = began_.size();
    const auto change = [&](int64_t time, int64_t by) {
      to->Change(time, by);
      visit(to->length);
    };
    while (launched < launches && began < begins) {
      const bool is_launch = launched_[launched] <= began_[began];
      const int64_t time = is_launch ? launched_[launched] : began_[began];
      launched += is_launch ? 1 : 0;
      began += is_launch ? 0 : 1;
      change(time, is_launch ? 1 : -1);
    }
    while (began < begins) change(began_[began++], -1);
    // HTA's selection may let work begin before its launch: the launches behind the last begin.
    while (launched < launches) change(launched_[launched++], 1);
  }
  // As Describe() does of the single lengths, of which there are twice as many as launches.
  Description DescribeLengths() const {
    Description of;
    double sum = 0;
    std::vector<std::pair<size_t, double>> ends;  // of each length: how many are no longer
    counts_.ForEach([&](int64_t length, uint32_t times) {
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
      Followed again;
      Follow(0, &again, [&](int64_t length) { add_square(length, 1); });
    } else {
      counts_.ForEach(add_square);
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

  static constexpr size_t kHeld = 1 << 16;  // and so never few (DescribeLengths)
  bool may_let_go_ = false, lets_go_ = false, is_sorted_ = true;
  int64_t last_launch_ = INT64_MIN, last_begin_ = INT64_MIN;
  std::vector<int64_t> launched_, began_;
  size_t gone_ = 0;    // of began_
  Followed followed_;  // without what is held
  LengthCounts counts_;
};

using QueueStreams = std::map<StreamNumbers::Stream, StreamQueue>;  // by device and stream

QueueStreams Collect(const Trace& trace, bool as_hta, bool may_let_go) {
  std::vector<bool> counts(trace.dictionary.apis() + 1);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaEnqueue(trace.dictionary.Api(id).name);
  }
  QueueStreams streams;
  const ApiCalls& calls = trace.api_calls;
  std::vector<bool> seen(as_hta ? 0 : calls.size());  // a graph is one launch of many kernels
  StreamQueue* last = nullptr;
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
      last = &streams.try_emplace(stream, may_let_go).first->second;
      last_stream = stream;
    }
    const int64_t launched = calls.start[span.launch];
    // By a device's clock, which is off by microseconds, work may begin before its launch.
    last->Add(launched, as_hta ? span.start : std::max(span.start, launched));
  }
  return streams;
}

QueueStreams QueuesOf(const Trace& trace, bool as_hta) {
  QueueStreams streams = Collect(trace, as_hta, !as_hta);
  const bool is_wrong =
      std::ranges::any_of(streams, [](const auto& of) { return of.second.is_wrong(); });
  return is_wrong ? Collect(trace, as_hta, false) : std::move(streams);
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
    QueueStreams streams = QueuesOf(trace, options.hta_compat);
    for (auto& [stream, queue] : streams) {
      const StreamQueue::Times times = queue.Take();
      rows.push_back(
          {&trace, stream.first, stream.second, times.full_ns, times.span_ns, times.length});
    }
  }
  Table table = TableOf("Launched work waiting on each stream", kQueueColumns, rows);
  if (table.rows.empty()) table.notes.push_back("no work was joined to its launch");
  return table;
}

}  // namespace ranktap::collector
