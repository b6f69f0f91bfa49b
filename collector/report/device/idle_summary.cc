
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "collector/facts/device_timeline.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kConsecutiveKernelDelayNs = 30'000;
// unknown: the file has no record of the launch of what follows the gap.
constexpr std::array<std::string_view, 4> kIdleCauses = {"host_wait", "kernel_wait", "other",
                                                         "unknown"};
constexpr size_t kUnknownCause = 3;

struct StreamIdle {
  std::array<int64_t, kIdleCauses.size()> ns{}, gaps{};
  int64_t end = 0;
  double hta_base_us = 0, hta_end_us = 0;
  bool any = false;

  void Add(size_t cause, int64_t gap) {
    ns[cause] += gap;
    ++gaps[cause];
  }
};

[[gnu::always_inline]] inline void AddIdle(const Trace& trace, const DeviceSpan& span,
                                           StreamIdle* idle) {
  if (idle->any && span.start > idle->end) {
    const int64_t gap = span.start - idle->end;
    const bool host_waited = span.launch != kNone && trace.api_calls.start[span.launch] > idle->end;
    const size_t cause = gap < kConsecutiveKernelDelayNs ? 1 : 2;
    idle->Add(span.launch == kNone ? kUnknownCause : host_waited ? 0 : cause, gap);
  }
  idle->end = idle->any ? std::max(idle->end, span.end) : span.end;
  idle->any = true;
}

// A time as HTA reads it: a double of the file's microseconds, which resolves 0.25 us in traces
// whose times count from 1970. Whether a launch began before an end differs in the last digits.
double HtaMicroseconds(int64_t ns) {
  return static_cast<double>(static_cast<long double>(ns) / 1000.0L);
}

// HTA counts from the end of the piece before, and a stream's first piece as a gap of 0 of category
// other. It subtracts the trace's first time before it adds durations, so that ends resolve more
// than starts; any base does the same.
void AddHtaSpan(const Trace& trace, const DeviceSpan& span, StreamIdle* idle) {
  const double read = HtaMicroseconds(span.start);
  if (!idle->any) idle->hta_base_us = read;
  const double start = read - idle->hta_base_us;
  if (idle->any) {
    const double gap = start - idle->hta_end_us;
    // Work whose launch is not in the file HTA joins with the file's first row, whatever that is.
    const int64_t launch =
        span.launch != kNone ? trace.api_calls.start[span.launch] : trace.first_in_file;
    const bool host_waited =
        launch != kUntimed && HtaMicroseconds(launch) - idle->hta_base_us > idle->hta_end_us;
    const bool is_short = gap * 1000 < static_cast<double>(kConsecutiveKernelDelayNs);
    idle->Add(host_waited ? 0 : is_short ? 1 : 2, std::llround(gap * 1000));
  } else {
    idle->Add(2, 0);
  }
  idle->hta_end_us = start + static_cast<double>(span.end - span.start) / 1000;
  idle->any = true;
}

using IdleStreams = std::map<std::pair<uint32_t, uint32_t>, StreamIdle>;  // by device and stream

IdleStreams FindIdle(const Trace& trace, bool as_hta) {
  IdleStreams streams;
  std::pair<const std::pair<uint32_t, uint32_t>, StreamIdle>* last = nullptr;
  for (const DeviceSpan& span : as_hta ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
    if (span.table == DeviceSpan::Table::kSync || span.table == DeviceSpan::Table::kOperator) {
      continue;
    }
    const std::pair stream(as_hta ? 0 : span.device, span.stream);
    if (last == nullptr || last->first != stream) last = &*streams.try_emplace(stream).first;
    if (as_hta) {
      AddHtaSpan(trace, DeviceSpan(span), &last->second);
    } else {
      AddIdle(trace, span, &last->second);
    }
  }
  return streams;
}

struct CauseRow {
  const Trace* trace;
  uint32_t device, stream;
  std::string_view cause;
  int64_t gaps, ns;
  int64_t stream_ns;  // of all causes
};

const ColumnsOf<CauseRow> kIdleColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const CauseRow& row) { return RankCell(*row.trace); }},
    {"device", Unit::kCount, kDeviceMeaning,
     [](const CauseRow& row) { return int64_t{row.device}; }, Shown::kDetail},
    {"stream", Unit::kCount, "The stream, as CUDA numbers it.",
     [](const CauseRow& row) { return StreamNumber(row.stream); }},
    {"cause", Unit::kText,
     "host_wait: not launched yet; kernel_wait: launched, under 30 us; other; unknown: the file "
     "lacks the launch.",
     [](const CauseRow& row) { return std::string(row.cause); }},
    {"gaps", Unit::kCount, "The gaps between pieces of work that have this cause.",
     [](const CauseRow& row) { return row.gaps; }},
    {"idle_ns", Unit::kNs, "The time in which the stream ran nothing.",
     [](const CauseRow& row) { return row.ns; }},
    {"share_percent", Unit::kPercent, "The share of the stream's idle time.",
     [](const CauseRow& row) { return Percent(row.ns, row.stream_ns); }},
};

}  // namespace

Table TabulateIdle(const Run& run, const ReportOptions& options) {
  std::vector<CauseRow> rows;
  for (const Trace& trace : run.traces) {
    if (!HasStarts(trace)) continue;
    for (const auto& [stream, idle] : FindIdle(trace, options.hta_compat)) {
      const int64_t total = std::accumulate(idle.ns.begin(), idle.ns.end(), int64_t{0});
      for (size_t cause = 0; cause < kIdleCauses.size(); ++cause) {
        if (idle.gaps[cause] == 0) continue;
        rows.push_back({&trace, stream.first, stream.second, kIdleCauses[cause], idle.gaps[cause],
                        idle.ns[cause], total});
      }
    }
  }
  Table table = TableOf("Idle time of each stream, by cause", kIdleColumns, rows);
  if (table.rows.empty()) {
    table.notes.push_back(std::ranges::any_of(run.traces, HasStarts)
                              ? "no stream was idle between two pieces of work"
                              : WhyNoWork(run));
  }
  return table;
}

}  // namespace ranktap::collector
