#include "collector/report/steps/loss_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/facts/stream_waits.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

// Time by name.
constexpr std::string_view kUnseen = ", for what is not in the trace";

struct Tally {
  int64_t total = 0;
  std::map<std::string, int64_t, std::less<>> by_name;

  void Add(std::string_view name, int64_t ns) {
    total += ns;
    if (name.empty()) return;
    const auto found = by_name.find(name);
    (found == by_name.end() ? by_name[std::string(name)] : found->second) += ns;
  }
  // The first by name where several are equal, so that each reading says the same.
  const std::pair<const std::string, int64_t>* Largest() const {
    const auto at =
        std::max_element(by_name.begin(), by_name.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return at == by_name.end() ? nullptr : &*at;
  }
  bool HasMost(int64_t ns) const { return ns * 2 > total; }
};

struct Tallies {
  Tally phases, modules, lines, waits;
  std::map<std::string, Tally> operators;  // that launched what waits, by the name in `waits`
};

bool IsIdleForHost(Cause cause) { return cause == Cause::kHost || cause == Cause::kSync; }

// The places that one rank's moments belong to.
class Places {
 public:
  explicit Places(const Trace& trace)
      : trace_(trace),
        spans_(DeviceTimeline(trace)),
        around_(trace),
        ops_(trace.operators.size() > 0 ? PlaceOperators(trace) : std::vector<OpPlace>()),
        waits_(StreamWaits(trace)),
        launched_before_(spans_.size(), INT64_MIN),
        lines_(trace) {
    Explained phases = PausesOfHost(trace);
    AddPasses(trace, &phases);
    phases_ = phases.Take();
    std::map<std::pair<uint32_t, uint32_t>, int64_t> last;  // launch, by device and stream
    for (size_t i = 0; i < spans_.size(); ++i) {
      const auto [at, is_new] = last.try_emplace({spans_[i].device, spans_[i].stream}, LaunchOf(i));
      if (!is_new) launched_before_[i] = std::exchange(at->second, LaunchOf(i));
    }
  }

  void Add(Cause cause, int64_t start, int64_t end, uint32_t span, Tallies* to) const {
    AddPhase(cause, start, end, span, &to->phases);
    const uint32_t op = span == kNone ? kNone : OperatorOf(span);
    to->modules.Add(op == kNone || ops_[op].module == 0 ? std::string_view()
                                                        : trace_.dictionary.String(ops_[op].module),
                    end - start);
    to->lines.Add(lines_.OfOperator(op), end - start);
    if (cause == Cause::kDependency && span != kNone) {
      const std::string what = WhatFor(start, end, span);
      to->waits.Add(what, end - start);
      to->operators[what].Add(
          op == kNone ? std::string_view() : trace_.dictionary.String(trace_.operators.name[op]),
          end - start);
    }
  }

 private:
  int64_t LaunchOf(size_t span) const {
    const uint32_t launch = spans_[span].launch;
    return launch == kNone ? INT64_MIN : trace_.api_calls.start[launch];
  }
  uint32_t OperatorOf(uint32_t span) const {
    const uint32_t launch = spans_[span].launch;
    if (launch == kNone) return kNone;
    return around_.RowAt(trace_.api_calls.writer[launch], trace_.api_calls.start[launch]);
  }

  void AddPhase(Cause cause, int64_t start, int64_t end, uint32_t span, Tally* to) const {
    if (!IsIdleForHost(cause)) {
      if (span != kNone && spans_[span].launch != kNone) start = LaunchOf(span);
      to->Add(PhaseAt(start), end - start);
      return;
    }
    auto at = std::upper_bound(phases_.begin(), phases_.end(), start, EndsAfter);
    for (; start < end; ++at) {
      if (at == phases_.end() || at->interval.first >= end) break;
      if (at->interval.first > start) to->Add("", at->interval.first - start);
      const int64_t from = std::max(start, at->interval.first);
      start = std::min(end, at->interval.second);
      to->Add(DescribePhase(at->cause), start - from);
    }
    if (start < end) to->Add("", end - start);
  }
  std::string_view PhaseAt(int64_t time) const {
    const auto at = std::upper_bound(phases_.begin(), phases_.end(), time, EndsAfter);
    return at == phases_.end() || at->interval.first > time ? "" : DescribePhase(at->cause);
  }
  static bool EndsAfter(int64_t time, const Explained::Piece& piece) {
    return time < piece.interval.second;
  }

  std::string WhatFor(int64_t start, int64_t end, uint32_t i) const {
    const DeviceSpan& span = spans_[i];
    const ApiCalls& calls = trace_.api_calls;
    if (span.launch == kNone) return "";
    const std::string_view call = trace_.dictionary.Api(calls.api[span.launch]).name;
    const int64_t in_call = std::min(end, calls.end[span.launch]) - start;
    if (in_call * 2 > end - start) return fmt::format("for its own call of {} to return", call);
    const int64_t stream = StreamNumber(span.stream);
    if (const auto wait = WaitBetween(waits_, span.stream, launched_before_[i], LaunchOf(i))) {
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
  const std::vector<DeviceSpan>& spans_;
  OperatorAround around_;
  std::vector<OpPlace> ops_;
  std::map<uint32_t, std::vector<StreamWait>> waits_;
  std::vector<int64_t> launched_before_;  // by span: the work before it on its stream
  std::vector<Explained::Piece> phases_;
  ProgramLines lines_;
};

void AddTrace(const Trace& trace, const std::vector<Interval>& waits,
              const RankWaterfall& waterfall, std::array<Tallies, kCauses>* to) {
  const Places places(trace);
  const std::vector<Step>& steps = waterfall.steps.list;
  size_t step = 0;
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&](Cause cause, int64_t start, int64_t end, uint32_t span) {
                if (cause == Cause::kCompute) return;
                while (step < steps.size() && steps[step].end <= start) ++step;
                for (size_t i = step; i < steps.size() && steps[i].start < end; ++i) {
                  if (steps[i].warm_up) continue;
                  places.Add(cause, std::max(start, steps[i].start), std::min(end, steps[i].end),
                             span, &(*to)[static_cast<size_t>(cause)]);
                }
              });
}

// ", 72.0 % of it in the backward pass"
std::string Most(const Tally& tally, std::string_view said_so_far, std::string_view before) {
  const auto* const largest = tally.Largest();
  if (largest == nullptr || !tally.HasMost(largest->second)) return "";
  return fmt::format(", {} {}{}{}", FormatShare(largest->second, tally.total),
                     said_so_far.empty() ? "of it " : "", before, largest->first);
}

}  // namespace

LossPlaces FindLossPlaces(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::array<Tallies, kCauses> tallies;
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  for (size_t t = 0; t < run.traces.size(); ++t) {
    if (waterfalls[t].counted == 0 || waterfalls[t].on_host) continue;
    AddTrace(run.traces[t], waits[t], waterfalls[t], &tallies);
  }
  LossPlaces places;
  int64_t unseen = 0;
  const Tally& of_launched = tallies[static_cast<size_t>(Cause::kDependency)].waits;
  for (const auto& [name, ns] : of_launched.by_name) unseen += name.ends_with(kUnseen) ? ns : 0;
  places[static_cast<size_t>(Cause::kDependency)].is_unseen = of_launched.HasMost(unseen);
  for (size_t c = 0; c < kCauses; ++c) {
    LossPlace& place = places[c];
    const auto cause = static_cast<Cause>(c);
    if (DescribePhase(cause).empty()) place.where = Most(tallies[c].phases, place.where, "");
    place.where += Most(tallies[c].modules, place.where, "in module ");
    place.where += Most(tallies[c].lines, place.where, "at ");
    const Tally& for_what = tallies[c].waits;
    if (const auto* const largest = for_what.Largest(); largest != nullptr) {
      place.waits_for = ": ";
      if (largest->second < for_what.total) {
        place.waits_for +=
            fmt::format("{} ({}) ", for_what.HasMost(largest->second) ? "mostly" : "the most",
                        FormatShare(largest->second, for_what.total));
      }
      place.waits_for += largest->first;
      const Tally& operators = tallies[c].operators[largest->first];
      const auto* const op = operators.Largest();
      if (op != nullptr && operators.HasMost(op->second)) place.waits_for += ", in " + op->first;
    }
  }
  return places;
}

}  // namespace ranktap::collector
