#include "collector/report/steps/loss_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/host_places.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_names.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/stream_numbers.h"
#include "collector/facts/stream_waits.h"
#include "collector/facts/sync_calls.h"
#include "collector/report/claims/mean_step.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/loss_tallies.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kUnseen = ", for what is not in the trace";

using TalliesByCause = std::array<Tallies, kCauses>;

// Causes whose place a sentence may tell (AddPlaces), and dependencies: a check asks for them.
using CauseFlags = std::array<bool, kCauses>;
CauseFlags CausesToTell(const MeanStep& mean) {
  CauseFlags told{};
  for (size_t c = 0; c < kCauses; ++c) told[c] = mean.IsWorthSaying(mean.times[c]);
  constexpr auto kDependency = static_cast<size_t>(Cause::kDependency);
  told[kDependency] = mean.times[kDependency] > 0;
  told[static_cast<size_t>(Cause::kCompute)] = false;
  return told;
}

bool IsOfHost(Cause cause) {
  return cause >= Cause::kCheckpoint && cause <= Cause::kHost && cause != Cause::kCapture;
}

bool IsIdleForHost(Cause cause) { return cause == Cause::kHost || cause == Cause::kSync; }

// A call of CUDA that takes kLatencyNs or longer, and does not wait for the device.
struct LongCall {
  int64_t start = 0, end = 0;
  uint32_t api = 0;
  uint16_t writer = 0;
};

// By start, disjoint: of calls of several threads, or inside of each other, the first.
std::vector<LongCall> LongCallsOf(const Trace& trace) {
  const std::vector<bool> waits = ApisThatWait(trace);
  const ApiCalls& calls = trace.api_calls;
  std::vector<LongCall> all, outer;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool is_wait = waits[std::min<size_t>(calls.api[i], waits.size() - 1)];
    if (is_wait || calls.end[i] - calls.start[i] < kLatencyNs) continue;
    all.push_back({calls.start[i], calls.end[i], calls.api[i], calls.writer[i]});
  }
  std::ranges::sort(all, {}, &LongCall::start);
  for (const LongCall& call : all) {
    if (outer.empty() || call.start >= outer.back().end) outer.push_back(call);
  }
  return outer;
}

// The places that one rank's moments belong to.
class Places {
 public:
  Places(const Trace& trace, const CauseFlags& told)
      : trace_(trace),
        spans_(DeviceTimeline(trace)),
        around_(trace),
        ops_(trace.operators.size() > 0 ? PlaceOperators(trace) : std::vector<OpPlace>()),
        waits_(StreamWaits(trace)),
        lines_(trace),
        samples_(SamplesOf(trace)),
        gaps_(trace),
        long_calls_(told[static_cast<size_t>(Cause::kHost)] ? LongCallsOf(trace)
                                                            : std::vector<LongCall>()),
        syncs_(SyncIntervals(trace)),
        wants_waits_(told[static_cast<size_t>(Cause::kHost)] ||
                     told[static_cast<size_t>(Cause::kDependency)]) {
    Explained phases = PausesOfHost(trace);
    AddPasses(trace, &phases);
    phases_ = phases.Take();
    if (waits_.empty() || !told[static_cast<size_t>(Cause::kDependency)]) return;
    launched_before_.resize(spans_.size());
    StreamNumbers streams;
    std::vector<int64_t> last;  // launch, by stream
    for (size_t i = 0; i < spans_.size(); ++i) {
      const uint32_t stream = streams.Of(spans_[i]);
      if (stream == last.size()) last.push_back(INT64_MIN);
      launched_before_[i] = std::exchange(last[stream], LaunchOf(i));
    }
  }

  // Else all that the moments add is time without a name.
  bool CanName() const {
    return wants_waits_ || !phases_.empty() || !around_.empty() || !samples_.empty();
  }

  void Add(Cause cause, int64_t start, int64_t end, uint32_t span, Tallies* to) {
    AddPhase(cause, start, end, span, &to->phases);
    const uint32_t op = span == kNone ? kNone : OperatorOf(span);
    to->modules.Add(op == kNone || ops_[op].module == 0 ? std::string_view()
                                                        : trace_.dictionary.String(ops_[op].module),
                    end - start);
    if (cause == Cause::kSync && !samples_.empty()) {
      AddSync(start, &to->in_syncs);
    } else if (IsOfHost(cause) && !samples_.empty()) {
      AddLines(start, end, &to->lines);
    } else {
      to->lines.Add(lines_.OfOperator(op), end - start);
    }
    if (cause == Cause::kDependency && span != kNone) {
      const DependencyKey key{spans_[span].stream, op == kNone ? kNone : trace_.operators.name[op],
                              KeyOfWhatFor(span)};
      if (last_ == nullptr || last_->first != key) {
        last_ = &*dependencies_.try_emplace(key, Dependency{span, 0}).first;
      }
      last_->second.ns += end - start;
    }
    if (cause == Cause::kHost) AddCalls(start, end, to);
  }
  // What work waited for: its words take longer than the rest of a piece.
  void AddDependencies(Tallies* to) const {
    for (const auto& [key, of] : dependencies_) {
      AddWait(WhatFor(of.span), of.ns,
              key.op == kNone ? std::string_view() : trace_.dictionary.String(key.op), to);
    }
  }

 private:
  struct DependencyKey {
    uint32_t stream = 0, op = 0;  // op: its name
    uint64_t what = 0;            // equal: WhatFor says the same
    auto operator<=>(const DependencyKey&) const = default;
  };
  struct Dependency {
    uint32_t span = 0;  // one of them
    int64_t ns = 0;
  };
  std::string_view NameOfOperator(uint32_t row) const {
    return row == kNone ? "" : trace_.dictionary.String(trace_.operators.name[row]);
  }
  static void AddWait(const std::string& what, int64_t ns, std::string_view op, Tallies* to) {
    to->waits.Add(what, ns);
    to->operators[what].Add(op, ns);
  }
  // Where the main thread was found meanwhile.
  void AddLines(int64_t start, int64_t end, Tally* to) const {
    int64_t seen = 0;
    samples_.ForEachOfMain(start, end, [&](const HostSample& sample, int64_t ns) {
      to->Add(samples_.Describe(samples_.LineOf(sample.frame)), ns);
      seen += ns;
    });
    to->Add("", end - start - seen);
  }
  // The line that waited: while the device is idle the host is past it already.
  void AddSync(int64_t time, LineTally* to) const {
    const auto at = std::ranges::upper_bound(syncs_, time, {}, &Interval::second);
    if (at != syncs_.end() && at->first <= time) to->Add(samples_, at->first, at->second);
  }
  // In which calls of CUDA the host sat meanwhile.
  void AddCalls(int64_t start, int64_t end, Tallies* to) const {
    int64_t in_calls = 0;
    auto at = std::ranges::upper_bound(long_calls_, start, {}, &LongCall::end);
    for (; at != long_calls_.end() && at->start < end; ++at) {
      const int64_t ns = std::min(end, at->end) - std::max(start, at->start);
      AddWait(trace_.dictionary.Api(at->api).name, ns,
              NameOfOperator(around_.RowAt(at->writer, at->start)), to);
      in_calls += ns;
    }
    to->waits.Add("", end - start - in_calls);
  }
  int64_t LaunchOf(size_t span) const {
    const uint32_t launch = spans_[span].launch;
    return launch == kNone ? INT64_MIN : trace_.api_calls.start[launch];
  }
  uint32_t OperatorOf(uint32_t span) const {
    if (around_.empty()) return kNone;
    const uint32_t launch = spans_[span].launch;
    if (launch == kNone) return kNone;
    return around_.RowAt(trace_.api_calls.writer[launch], trace_.api_calls.start[launch]);
  }

  void AddPhase(Cause cause, int64_t start, int64_t end, uint32_t span, Tally* to) const {
    if (phases_.empty()) return to->Add("", end - start);
    if (!IsIdleForHost(cause)) {
      if (span != kNone && spans_[span].launch != kNone) start = LaunchOf(span);
      to->Add(PhaseAt(start), end - start);
      return;
    }
    auto at = std::upper_bound(phases_.begin(), phases_.end(), start, EndsAfter);
    for (; start < end; ++at) {
      if (at == phases_.end() || at->interval.first >= end) break;
      if (at->interval.first > start) to->Add(gaps_.At(start), at->interval.first - start);
      const int64_t from = std::max(start, at->interval.first);
      start = std::min(end, at->interval.second);
      to->Add(DescribePhase(at->cause), start - from);
    }
    if (start < end) to->Add(gaps_.At(start), end - start);
  }
  std::string_view PhaseAt(int64_t time) const {
    const auto at = std::upper_bound(phases_.begin(), phases_.end(), time, EndsAfter);
    return at == phases_.end() || at->interval.first > time ? "" : DescribePhase(at->cause);
  }
  static bool EndsAfter(int64_t time, const Explained::Piece& piece) {
    return time < piece.interval.second;
  }

  // What its stream was told to wait for since the launch before it.
  auto WaitOf(uint32_t i) const {
    const int64_t before = launched_before_.empty() ? INT64_MIN : launched_before_[i];
    return WaitBetween(waits_, spans_[i].stream, before, LaunchOf(i));
  }
  uint64_t KeyOfWhatFor(uint32_t i) const {
    constexpr uint64_t kEvent = uint64_t{1} << 63;
    const DeviceSpan& span = spans_[i];
    if (span.launch == kNone) return kEvent - 1;
    if (const auto wait = WaitOf(i)) {
      return kEvent | wait->on;
    }
    return span.table == DeviceSpan::Table::kKernel ? 0 : KeyOfName(trace_, span);
  }
  std::string WhatFor(uint32_t i) const {
    const DeviceSpan& span = spans_[i];
    if (span.launch == kNone) return "";
    const int64_t stream = StreamNumber(span.stream);
    if (const auto wait = WaitOf(i)) {
      return wait->on == kNone
                 ? fmt::format("for an event that stream {} was told to wait for", stream)
                 : fmt::format("for an event of stream {}, which stream {} was told to wait for",
                               wait->on, stream);
    }
    if (span.table != DeviceSpan::Table::kKernel) {
      return fmt::format("for {} on stream {} to begin", NameOf(trace_, span), stream);
    }
    return fmt::format("on stream {}{}", stream, kUnseen);
  }

  const Trace& trace_;
  const DeviceSpans& spans_;
  OperatorAround around_;
  std::vector<OpPlace> ops_;
  std::map<uint32_t, std::vector<StreamWait>> waits_;
  std::vector<int64_t>
      launched_before_;  // by span: the work before it on its stream; empty: unasked
  std::vector<Explained::Piece> phases_;
  ProgramLines lines_;
  const HostSamples& samples_;
  PassGaps gaps_;
  std::vector<LongCall> long_calls_;
  std::vector<Interval> syncs_;
  bool wants_waits_;  // calls of CUDA, or what work waited for
  std::map<DependencyKey, Dependency> dependencies_;
  std::pair<const DependencyKey, Dependency>* last_ = nullptr;  // asked for
};

void AddTrace(const Trace& trace, const std::vector<Interval>& waits,
              const RankWaterfall& waterfall, const CauseFlags& told, TalliesByCause* to) {
  Places places(trace, told);
  const std::vector<Step>& steps = waterfall.steps.list;
  if (!places.CanName()) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t c = 0; c < kCauses && !steps[i].warm_up; ++c) {
        if (told[c]) (*to)[c].AddUnnamed(waterfall.times[i][c]);
      }
    }
    return;
  }
  size_t step = 0;
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&](Cause cause, int64_t start, int64_t end, uint32_t span) {
                if (!told[static_cast<size_t>(cause)]) return;
                while (step < steps.size() && steps[step].end <= start) ++step;
                if (step < steps.size() && steps[step].start <= start && end <= steps[step].end) {
                  if (steps[step].warm_up) return;
                  places.Add(cause, start, end, span, &(*to)[static_cast<size_t>(cause)]);
                  return;
                }
                for (size_t i = step; i < steps.size() && steps[i].start < end; ++i) {
                  if (steps[i].warm_up) continue;
                  places.Add(cause, std::max(start, steps[i].start), std::min(end, steps[i].end),
                             span, &(*to)[static_cast<size_t>(cause)]);
                }
              });
  places.AddDependencies(&(*to)[static_cast<size_t>(Cause::kDependency)]);
}

// ", 72.0 % of it in the backward pass"
std::string Most(const Tally& tally, std::string_view said_so_far, std::string_view before) {
  const auto* const largest = tally.Largest();
  if (largest == nullptr || !tally.HasMost(largest->second)) return "";
  return fmt::format(", {} {}{}{}", FormatShare(largest->second, tally.total),
                     said_so_far.empty() ? "of it " : "", before, largest->first);
}

// ", in aten::conv2d": the operator that most of `what` lies in.
std::string InOperator(const Tallies& tallies, const std::string& what) {
  const Tally& operators = tallies.operators.at(what);
  const auto* const op = operators.Largest();
  return op != nullptr && operators.HasMost(op->second) ? ", in " + op->first : "";
}

// ", 83.3 % of it inside of cudaLaunchKernel, in aten::conv2d"
std::string InCalls(const Tallies& tallies) {
  std::string text = Most(tallies.waits, "", "inside of ");
  return text.empty() ? text : text + InOperator(tallies, tallies.waits.Largest()->first);
}

// ": mostly (80.0 %) for an event of stream 20, which stream 7 was told to wait for"
std::string ForWhat(const Tallies& tallies) {
  const Tally& waits = tallies.waits;
  const auto* const largest = waits.Largest();
  if (largest == nullptr) return "";
  std::string text = ": ";
  if (largest->second < waits.total) {
    text += fmt::format("{} ({}) ", waits.HasMost(largest->second) ? "mostly" : "the most",
                        FormatShare(largest->second, waits.total));
  }
  return text + largest->first + InOperator(tallies, largest->first);
}

LossPlaces PlacesOf(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const CauseFlags told = CausesToTell(MeanOfRanks(waterfalls));
  std::vector<TalliesByCause> by_trace(run.traces.size());
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (waterfalls[t].counted == 0 || waterfalls[t].on_host) return;
    AddTrace(run.traces[t], waits[t], waterfalls[t], told, &by_trace[t]);
  });
  TalliesByCause tallies;
  for (const TalliesByCause& of_trace : by_trace) {
    for (size_t c = 0; c < kCauses; ++c) tallies[c].Add(of_trace[c]);
  }
  LossPlaces places;
  int64_t unseen = 0;
  const Tally& of_launched = tallies[static_cast<size_t>(Cause::kDependency)].waits;
  for (const auto& [name, ns] : of_launched.by_name) unseen += name.ends_with(kUnseen) ? ns : 0;
  places[static_cast<size_t>(Cause::kDependency)].is_unseen = of_launched.HasMost(unseen);
  for (size_t c = 0; c < kCauses; ++c) {
    LossPlace& place = places[c];
    const auto cause = static_cast<Cause>(c);
    if (cause == Cause::kHost) place.where = InCalls(tallies[c]);
    if (cause == Cause::kDependency) place.waits_for = ForWhat(tallies[c]);
    if (DescribePhase(cause).empty()) place.where += Most(tallies[c].phases, place.where, "");
    place.where += Most(tallies[c].modules, place.where, "in module ");
    place.where += Most(tallies[c].lines, place.where, "at ");
    const std::string line = tallies[c].in_syncs.Most();
    if (!line.empty()) place.where += ", at " + line;
  }
  return places;
}

}  // namespace

const LossPlaces& FindLossPlaces(const Run& run) {
  return run.memo.Get<LossPlaces>([&run] { return PlacesOf(run); });
}

}  // namespace ranktap::collector
