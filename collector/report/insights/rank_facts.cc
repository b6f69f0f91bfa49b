#include "collector/report/insights/rank_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/sync_calls.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/insight.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMany = 4096;

}  // namespace

RankFacts::RankFacts(const Run& run, uint32_t trace)
    : run_(run),
      index_(trace),
      trace_(run.traces[trace]),
      waterfall_(ComputeWaterfalls(run)[trace]),
      spans_(DeviceTimeline(trace_)) {
  std::vector<Interval> counted;
  for (const Step& step : waterfall_.steps.list) {
    if (!step.warm_up) counted.emplace_back(step.start, step.end);
  }
  counted_ = Merged(std::move(counted));
}

bool RankFacts::has_device() const { return waterfall_.counted > 0 && !waterfall_.on_host; }
bool RankFacts::has_steps() const { return !waterfall_.steps.source.empty(); }
int64_t RankFacts::step_ns() const { return waterfall_.mean_step; }

std::string_view RankFacts::WhyNoDevice() const { return WhyNoWork(trace_); }

bool RankFacts::has_launches() const {
  return memo_.Get<bool>([this] {
    return std::ranges::any_of(spans(),
                               [](const DeviceSpan& span) { return span.launch != kNone; });
  });
}

// Mostly asked in the order of time: no search for each piece.
bool RankFacts::IsCounted(int64_t time) const {
  const auto is_at = [&](size_t i) {
    return i < counted_.size() && counted_[i].first <= time &&
           (i + 1 == counted_.size() || time < counted_[i + 1].first);
  };
  size_t at = counted_at_.load(std::memory_order_relaxed);
  if (is_at(at + 1)) ++at;
  if (!is_at(at)) {
    const auto after =
        std::upper_bound(counted_.begin(), counted_.end(), Interval{time, INT64_MAX});
    if (after == counted_.begin()) return false;
    at = static_cast<size_t>(std::prev(after) - counted_.begin());
  }
  counted_at_.store(at, std::memory_order_relaxed);
  return time < counted_[at].second;
}

int64_t RankFacts::PerStep(int64_t sum) const {
  return waterfall_.counted == 0 ? 0 : sum / static_cast<int64_t>(waterfall_.counted);
}

double RankFacts::TimesPerStep(int64_t count) const {
  return waterfall_.counted == 0
             ? 0
             : static_cast<double>(count) / static_cast<double>(waterfall_.counted);
}

bool RankFacts::IsWorth(int64_t ns_per_step, double share) const {
  return ns_per_step > 0 &&
         static_cast<double>(ns_per_step) >= share * static_cast<double>(step_ns());
}

std::string RankFacts::OfStep() const {
  return has_steps() ? fmt::format("of each {} {}", FormatNs(step_ns()), waterfall_.steps.noun())
                     : fmt::format("of {}", FormatNs(step_ns()));
}

std::string RankFacts::TimesAStep(int64_t count) const {
  if (!has_steps()) return count == 1 ? "once" : fmt::format("{} times", FormatCount(count));
  const double times = TimesPerStep(count);
  if (times == 1) return fmt::format("once a {}", waterfall_.steps.noun());
  constexpr double kRare = 0.05;  // which would be 0.0 times
  if (times > 0 && times < kRare) {
    return fmt::format("once in {} {}s", FormatCount(std::llround(1 / times)),
                       waterfall_.steps.noun());
  }
  const auto whole = static_cast<int64_t>(std::llround(times));
  const bool is_whole = times >= 10 || times == static_cast<double>(whole);
  return fmt::format("{} times a {}", is_whole ? FormatCount(whole) : fmt::format("{:.1f}", times),
                     waterfall_.steps.noun());
}

// In one pass: sets of both kinds, and their difference, were most of *exposed-comm*.
int64_t RankFacts::TimeAlone(WorkKind kind, WorkKind other) const {
  int64_t alone = 0, at = INT64_MIN, own_end = INT64_MIN, other_end = INT64_MIN;
  size_t step = 0;
  const auto move_to = [&](int64_t until) {
    const int64_t start = std::max(at, other_end), end = std::min(until, own_end);
    at = until;
    alone += LengthWithin(counted_, start, end, &step);
  };
  for (const DeviceSpan& span : spans()) {
    if (span.kind != kind && span.kind != other) continue;
    move_to(span.start);
    int64_t& reached = span.kind == kind ? own_end : other_end;
    reached = std::max(reached, span.end);
  }
  move_to(INT64_MAX);
  return alone;
}

const RankFacts::LostTime& RankFacts::Lost() const {
  return memo_.Get<LostTime>([this] { return FindLost(); });
}

RankFacts::LostTime RankFacts::FindLost() const {
  LostTime lost;
  if (!has_device() || counted_.empty()) return lost;
  const size_t works = spans().size();
  size_t at = 0;
  std::optional<int64_t> dry;
  SweepDevice(trace_, WaitsForOtherRanks(run_)[index_], counted_.front().first,
              counted_.back().second, [&](Cause cause, int64_t start, int64_t end, uint32_t span) {
                const bool is_idle = (kIdleCauses & BitOf(cause)) != 0;
                dry = is_idle ? dry.value_or(start) : std::optional<int64_t>();
                if (cause == Cause::kCompute) return;
                std::vector<LostPiece>& pieces = lost.by_cause[Index(cause)];
                // As much of each large one: it takes the block that another gave back
                // (KeepLargeBlocks).
                if (pieces.size() >= kMany && pieces.capacity() < works) pieces.reserve(works);
                while (at < counted_.size() && counted_[at].second <= start) ++at;
                for (size_t i = at; i < counted_.size() && counted_[i].first < end; ++i) {
                  pieces.push_back({std::max(start, counted_[i].first),
                                    std::min(end, counted_[i].second), cause, span});
                  if (cause == Cause::kSync) lost.dry_since.push_back(*dry);
                }
              });
  return lost;
}

const std::vector<HostWait>& RankFacts::waits() const {
  return memo_.Get<std::vector<HostWait>>([this] { return FindWaits(); });
}

std::vector<HostWait> RankFacts::FindWaits() const {
  std::vector<HostWait> all, waits;
  ForEachSyncCall(trace_, [&](const ApiCalls& calls, size_t i) {
    all.push_back({&calls, static_cast<uint32_t>(i), calls.start[i], calls.end[i],
                   trace_.dictionary.Api(calls.api[i]).name});
  });
  std::ranges::stable_sort(all, [](const HostWait& a, const HostWait& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  for (const HostWait& wait : all) {
    // The driver's call inside the runtime's.
    if (!waits.empty() && wait.end <= waits.back().end && wait.writer() == waits.back().writer()) {
      continue;
    }
    waits.push_back(wait);
  }
  return waits;
}

const HostWait* RankFacts::WaitAt(int64_t time) const {
  constexpr int kLookedBack = 16;  // threads that wait at once
  const std::vector<HostWait>& all = waits();
  auto at = std::ranges::upper_bound(all, time, {}, &HostWait::start);
  for (int i = 0; i < kLookedBack && at != all.begin(); ++i) {
    if ((--at)->end >= time) return &*at;
  }
  return nullptr;
}

uint32_t RankFacts::OperatorAt(uint16_t writer, int64_t time) const {
  return memo_.Get<OperatorAround>([this] { return OperatorAround(trace_); }).RowAt(writer, time);
}

uint32_t RankFacts::OperatorOf(const DeviceSpan& span) const {
  if (span.launch == kNone) return kNone;
  return OperatorAt(trace_.api_calls.writer[span.launch], trace_.api_calls.start[span.launch]);
}

std::string RankFacts::PlaceAt(uint16_t writer, int64_t time) const {
  const uint32_t op = OperatorAt(writer, time);
  std::string place;
  if (op != kNone) place = trace_.dictionary.String(trace_.operators.name[op]);
  if (place.starts_with("ProfilerStep#")) place.clear();  // a step is no place
  const auto& lines = memo_.Get<ProgramLines>([this] { return ProgramLines(trace_); });
  if (const std::string_view line = lines.At(writer, time, op); !line.empty()) {
    place += (place.empty() ? "" : " at ") + std::string(line);
  }
  return place;
}

std::string RankFacts::PlaceOf(const DeviceSpan& span) const {
  if (span.launch == kNone) return "";
  const ApiCalls& calls = trace_.api_calls;
  std::string place = PlaceAt(calls.writer[span.launch], calls.start[span.launch]);
  return place.empty() ? NativeLineOf(trace_, calls.stack.At(span.launch)) : place;
}

std::string RankFacts::PlaceOf(const HostWait& wait) const {
  std::string place = PlaceAt(wait.writer(), wait.start);
  return place.empty() ? NativeLineOf(trace_, wait.calls->stack.At(wait.row)) : place;
}

}  // namespace ranktap::collector
