#include "collector/trace/load/time_mapping.h"

#include <algorithm>

#include "collector/trace/at_once.h"
#include "collector/trace/load/map_spans.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

void MakeClocks(const std::vector<v1::ClockReading>& readings, Trace* trace) {
  const v1::HostClock& host = trace->hello.host_clock();
  std::vector<ClockPair> ticks, realtime;
  for (const v1::ClockReading& reading : readings) {
    const auto raw = static_cast<int64_t>(reading.monotonic_raw_ns());
    if (reading.tsc() != 0) ticks.push_back({reading.tsc(), raw});
    if (reading.realtime_ns() != 0) realtime.push_back({reading.realtime_ns(), raw});
  }
  if (!readings.empty()) {
    const auto latest = std::max_element(
        readings.begin(), readings.end(),
        [](const auto& a, const auto& b) { return a.monotonic_raw_ns() < b.monotonic_raw_ns(); });
    trace->realtime_offset_ns = static_cast<int64_t>(latest->realtime_ns()) -
                                static_cast<int64_t>(latest->monotonic_raw_ns());
    trace->has_clock = true;
  }
  trace->device_clock = ClockMap(std::move(realtime), Steps::kPossible);
  if (host.kind() == v1::HostClock::KIND_TSC) {
    trace->host_clock = ClockMap(std::move(ticks), Steps::kNever);
    trace->host_ns_per_tick = trace->host_clock.ns_per_tick();
  }
}

uint64_t LastTick(const Trace& trace, RangeMatcher& matcher) {
  uint64_t last = 0;
  const auto cover = [&last](const auto& column) {
    for (const auto value : column) last = std::max(last, static_cast<uint64_t>(value));
  };
  cover(trace.api_calls.end), cover(trace.event_calls.end);
  cover(trace.ranges.start), cover(trace.marks.start), cover(matcher.pops().time);
  return last;
}

void MapHostTimes(const RawTimes& raw, Trace* trace, Bounds* bounds) {
  const ClockMap& clock = trace->host_clock;
  const auto map_spans = [&](auto& table) {
    MapSpans(clock, Zero::kIsATime, &table.start, &table.end, bounds);
  };
  map_spans(trace->api_calls);
  map_spans(trace->event_calls);
  map_spans(trace->ranges);
  map_spans(trace->marks);
  const auto map = [&clock](uint64_t* ticks) { *ticks = static_cast<uint64_t>(clock.Map(*ticks)); };
  for (auto& row : trace->names) map(&row.time_ticks);
  for (auto& row : trace->resources) map(&row.time_ticks);
  for (const auto& [key, gap] : raw.gaps) {
    trace->gaps.push_back({.start = clock.Map(gap.start_ticks()),
                           .end = gap.end_ticks() == 0 ? 0 : clock.Map(gap.end_ticks()),
                           .open = gap.end_ticks() == 0,
                           .reason = gap.reason(),
                           .source = gap.source(),
                           .detail = gap.detail()});
  }
  for (const v1::OpenCall& call : raw.open_calls.calls()) {
    uint32_t writer = kNone;
    for (uint32_t i = 0; i < trace->writers.size(); ++i) {
      if (trace->writers[i].id == call.writer()) writer = i;
    }
    trace->open_calls.push_back({.writer = writer,
                                 .api = call.api(),
                                 .correlation = call.correlation(),
                                 .since = clock.Map(call.since_ticks())});
  }
}

void MapDeviceTimes(Trace* trace, Bounds* bounds) {
  const ClockMap& clock = trace->device_clock;
  const auto map_spans = [&](auto& table) {
    MapSpans(clock, Zero::kMeansUntimed, &table.start, &table.end, bounds);
  };
  map_spans(trace->kernels);
  map_spans(trace->copies);
  map_spans(trace->memsets);
  map_spans(trace->graph_launches);
  map_spans(trace->syncs);
  const auto map = [&clock](uint64_t* ns) {
    if (*ns != 0) *ns = static_cast<uint64_t>(clock.Map(*ns));
  };
  for (auto& row : trace->cuda_events) map(&row.device_ns);
  for (auto& row : trace->memory) map(&row.time_ns);
  for (auto& row : trace->memory_pools) map(&row.time_ns);
  for (auto& row : trace->overheads) map(&row.start_ns), map(&row.end_ns);
  for (auto& row : trace->jits) map(&row.start_ns), map(&row.end_ns);
}

}  // namespace

void MapTimes(const RawTimes& raw, RangeMatcher* matcher, Trace* trace) {
  MakeClocks(raw.readings, trace);
  matcher->Match(LastTick(*trace, *matcher));
  trace->unmatched_pops = matcher->unmatched_pops();
  // The host's tables and the device's share nothing. A thread takes longer than few events.
  constexpr uint64_t kWorthAThread = 1 << 16;
  Bounds bounds, of_device;
  const auto map = [&](size_t i) {
    i == 0 ? MapHostTimes(raw, trace, &bounds) : MapDeviceTimes(trace, &of_device);
  };
  if (trace->events < kWorthAThread) {
    map(0), map(1);
  } else {
    ForEachOnIdle(2, map);
  }
  bounds.Cover(of_device.first, of_device.last);
  if (bounds.first <= bounds.last) {
    trace->first_ns = bounds.first;
    trace->last_ns = bounds.last;
  }
  for (Gap& gap : trace->gaps) {
    if (gap.open) gap.end = std::max(gap.start, trace->last_ns);
  }
}

}  // namespace ranktap::collector
