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
constexpr size_t kLeastParts = 3;
constexpr double kLeastLowShare = 0.01;  // of the step, exposed: as the verdict's

// Of the counted steps, as every other share, and not from the device's first work to its last.
struct PartOfTime {
  int64_t start = 0, end = 0;
  int64_t busy = 0;  // of a device, within counted steps
};

// How busy one device is, part by part: its work comes by start.
class BusyParts {
 public:
  explicit BusyParts(const std::vector<Interval>& counted) : counted_(counted) {
    const int64_t first = counted.front().first, last = counted.back().second;
    for (int64_t part = 0; part < kParts; ++part) {
      parts_[static_cast<size_t>(part)] = {first + (last - first) * part / kParts,
                                           first + (last - first) * (part + 1) / kParts};
    }
  }
  void Add(int64_t start, int64_t end) {
    start = std::max(start, reached_);
    if (end <= start) return;
    reached_ = end;
    while (start < end && at_ < parts_.size()) {
      const int64_t until = std::min(end, parts_[at_].end);
      if (start < until) parts_[at_].busy += LengthWithin(counted_, start, until, &step_);
      start = std::max(start, until);
      if (start >= parts_[at_].end) ++at_;
    }
  }
  // Those of little use; none of a device that did nothing in counted steps.
  std::vector<Interval> Low() const {
    std::vector<Interval> low;
    const bool any =
        std::ranges::any_of(parts_, [](const PartOfTime& part) { return part.busy > 0; });
    for (const PartOfTime& part : parts_) {
      const int64_t all = Length(Within(counted_, part.start, part.end));
      const bool is_low = static_cast<double>(part.busy) < kLowShare * static_cast<double>(all);
      if (any && is_low) low.emplace_back(part.start, part.end);
    }
    return low;
  }

 private:
  const std::vector<Interval>& counted_;
  std::array<PartOfTime, kParts> parts_;
  size_t at_ = 0, step_ = 0;
  int64_t reached_ = INT64_MIN;
};

struct Use {
  std::vector<Interval> busy;  // within counted steps
  std::vector<Interval> low;   // neighbours joined
  int64_t parts = 0;           // that are low
};

// The work of one device is collected only where it has a finding.
Use UseOf(const RankFacts& rank, uint32_t device, std::vector<Interval> low) {
  Use use{.parts = static_cast<int64_t>(low.size())};
  for (const DeviceSpan& span : rank.spans()) {
    if (span.device == device) Append({span.start, span.end}, &use.busy);
  }
  use.busy = Intersection(use.busy, rank.counted());
  use.low = Merged(std::move(low));
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
  if (rank.counted().empty()) return {};
  std::map<uint32_t, BusyParts> devices;
  std::pair<const uint32_t, BusyParts>* last = nullptr;
  for (const DeviceSpan& span : rank.spans()) {
    if (last == nullptr || last->first != span.device) {
      last = &*devices.try_emplace(span.device, rank.counted()).first;
    }
    last->second.Add(span.start, span.end);
  }
  Answer answer;
  for (const auto& [device, parts] : devices) {
    std::vector<Interval> low = parts.Low();
    if (low.size() < kLeastParts) continue;
    answer.insights.push_back(About(rank, device, UseOf(rank, device, std::move(low))));
  }
  return answer;
}

}  // namespace ranktap::collector
