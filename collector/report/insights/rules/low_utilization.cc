// Stretches in which a device runs little (nsys: gpu_time_util).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collector/facts/collective_types.h"
#include "collector/report/claims/claim.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/first_time.h"
#include "collector/report/insights/rules/all_rules.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

// nsys analyze gpu_time_util's defaults: 30 equal parts, of which those under 50 % are reported.
constexpr int64_t kParts = 30;
constexpr double kLowShare = 0.5;
// One part alone is the end of an epoch; nsys reports that, too, and nobody acts on it.
constexpr int64_t kLeastParts = 3;
constexpr double kLeastLowShare = 0.01;  // of the step, exposed: as the verdict's

struct Use {
  std::vector<Interval> busy;
  std::vector<Interval> low;  // neighbours joined
  int64_t parts = 0;          // that are low
};

// Of the counted steps, as every other share, and not from the device's first work to its last.
Use Measure(const std::vector<Interval>& work, const std::vector<Interval>& counted) {
  Use use{.busy = Intersection(work, counted)};
  if (use.busy.empty()) return use;
  const int64_t first = counted.front().first, last = counted.back().second;
  for (int64_t part = 0; part < kParts; ++part) {
    const int64_t start = first + (last - first) * part / kParts;
    const int64_t end = first + (last - first) * (part + 1) / kParts;
    const int64_t busy = Length(Within(use.busy, start, end));
    const int64_t all = Length(Within(counted, start, end));
    if (static_cast<double>(busy) >= kLowShare * static_cast<double>(all)) continue;
    ++use.parts;
    use.low.emplace_back(start, end);
  }
  use.low = Merged(std::move(use.low));
  return use;
}

// Not by "reduce" or "send" alone, which programs call much else.
bool NamesACollective(std::string_view range) {
  static constexpr std::string_view kTypes[] = {"allreduce", "allgather", "reducescatter",
                                                "alltoall",  "broadcast", "barrier"};
  return std::ranges::find(kTypes, CollectiveTypeOf(range)) != std::end(kTypes);
}

bool HasExposedCollectives(const RankFacts& rank) {
  const int64_t exposed = rank.TimeAlone(WorkKind::kCommunication, WorkKind::kCompute);
  return rank.IsWorth(rank.PerStep(exposed), kLeastLowShare);
}

// Where known collectives are exposed, ranges tell which. Elsewhere a range that is named like one
// says nothing: the report says beside it that no communication is exposed. gloo's calls, which the
// agent saw, count always. The one with most of `idle`, if they have more than half of it; empty:
// they have not.
std::string CommunicationWhileIdle(const RankFacts& rank, const std::vector<Interval>& idle) {
  const Trace& trace = rank.trace();
  std::map<uint32_t, std::vector<Interval>> by_name;
  std::vector<Interval> all;
  const bool counts_any = HasExposedCollectives(rank);
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    const bool is_gloos = trace.dictionary.Domain(trace.ranges.domain[i]) == proto::kCommDomain;
    if (!counts_any && !is_gloos) continue;
    const uint32_t name = trace.ranges.name[i];
    const auto known = by_name.find(name);
    if (known == by_name.end() && !NamesACollective(trace.dictionary.String(name))) continue;
    by_name[name].emplace_back(trace.ranges.start[i], trace.ranges.end[i]);
    all.emplace_back(trace.ranges.start[i], trace.ranges.end[i]);
  }
  if (LengthInBoth(Merged(std::move(all)), idle) * 2 <= Length(idle)) return "";
  std::pair<int64_t, uint32_t> most{-1, 0};
  for (auto& [name, moments] : by_name) {
    most = std::max(most, {LengthInBoth(Merged(std::move(moments)), idle), name});
  }
  return std::string(trace.dictionary.String(most.second));
}

// Where one cause has most of the idle time, its remedy: a larger batch helps no device that waits
// for a compiler, a loader or the network. Empty: the rule's own.
std::string AdviceOnIdleTime(const RankFacts& rank) {
  std::array<int64_t, kCauses> times{};
  int64_t all = 0;
  std::vector<Interval> idle;
  rank.ForEachLost(kIdleCauses, [&](const LostPiece& piece) {
    Append({piece.start, piece.end}, &idle);
    times[static_cast<size_t>(piece.cause)] += piece.length();
    all += piece.length();
  });
  if (const FirstTimeCosts costs = FirstTimeCostsOf(rank); costs.ns() * 2 > all) {
    return std::string(AdviceOn(costs.Most()));
  }
  const auto most = static_cast<Cause>(std::ranges::max_element(times) - times.begin());
  switch (times[static_cast<size_t>(most)] * 2 > all ? most : Cause::kHost) {
    case Cause::kDataLoading:
      return "Load data ahead (num_workers, prefetch_factor, pin_memory): the device waits for it.";
    case Cause::kCheckpoint:
      return "Save checkpoints asynchronously, or less often: the device waits for them.";
    case Cause::kCollection:
      return "Keep Python's garbage collection out of the loop: the device waits for it.";
    case Cause::kCapture:
      return "Capture CUDA graphs once, before the loop: the device waits for it.";
    case Cause::kSync:
      return "Leave out what waits for the device (*syncs* names it).";
    case Cause::kDependency:
      return "Look at what launched work waits for (*queue*).";
    default:
      break;
  }
  const std::string range = CommunicationWhileIdle(rank, idle);
  if (range.empty()) return "";
  return fmt::format(
      "Overlap what the range {} communicates with computation, or send less: the device waits "
      "for it.",
      range);
}

// No saving: this is what other rules' causes come to.
Insight About(const RankFacts& rank, uint32_t device, const Use& use) {
  const Interval longest =
      *std::ranges::max_element(use.low, {}, [](const Interval& i) { return i.second - i.first; });
  const int64_t lost = rank.PerStep(LengthInBoth(Difference(use.low, use.busy), rank.counted()));
  return {
      .device = device,
      .finding = fmt::format(
          "Device {} runs something for less than half of the time in {} of {} equal parts of "
          "{}, the longest stretch {} from {} into the trace; on the whole it is busy {}.",
          device, use.parts, kParts,
          FormatNs(rank.counted().back().second - rank.counted().front().first),
          FormatNs(longest.second - longest.first), FormatNs(longest.first - rank.trace().first_ns),
          FormatShare(Length(use.busy), Length(rank.counted()))),
      .advice = AdviceOnIdleTime(rank),
      .count = use.parts,
      .lost_ns = lost};
}

}  // namespace

Answer FindLowUtilization(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (const Ruling& ruling = RulingOn(rank.run(), Claim::kBusy); ruling.is_undecided()) {
    return CannotTell(ruling.why);
  }
  std::map<uint32_t, std::vector<Interval>> work;  // merged
  std::pair<const uint32_t, std::vector<Interval>>* last = nullptr;
  for (const DeviceSpan& span : rank.spans()) {
    if (last == nullptr || last->first != span.device) last = &*work.try_emplace(span.device).first;
    Append({span.start, span.end}, &last->second);
  }
  Answer answer;
  for (const auto& [device, spans] : work) {
    const Use use = Measure(spans, rank.counted());
    if (use.parts >= kLeastParts) answer.insights.push_back(About(rank, device, use));
  }
  return answer;
}

}  // namespace ranktap::collector
