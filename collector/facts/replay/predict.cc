#include "collector/facts/replay/predict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/replay/step_places.h"
#include "collector/facts/replay/suggest_changes.h"
#include "collector/facts/shared_clock.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr double kMedianOff = 1, kP95Off = 3, kViolatedPercent = 0.1, kGapPercent = 10;
// What a run of the same program differs by, and what a share of a gain may be off by: together
// they held 12 of 14 pairs on a machine that others used (docs/measurements/whatif.md).
constexpr double kRunToRun = 0.03, kOfGain = 0.06;

int64_t MedianStep(const std::vector<int64_t>& lengths) {
  std::vector<double> values(lengths.begin(), lengths.end());
  return static_cast<int64_t>(Median(std::move(values)));
}

double StandardError(const std::vector<int64_t>& lengths) {
  constexpr size_t kFewest = 3;  // of fewer nobody knows how far apart they are
  constexpr double kUnknown = 0.02;
  if (lengths.size() < kFewest) {
    return kUnknown * static_cast<double>(*std::ranges::max_element(lengths));
  }
  std::vector<double> sorted(lengths.begin(), lengths.end());
  std::ranges::sort(sorted);
  const double spread = (Quantile(sorted, 0.75) - Quantile(sorted, 0.25)) / 1.349;
  return 1.253 * spread / std::sqrt(static_cast<double>(sorted.size()));
}

// Which edges contradict the trace most.
std::string WorstEdges(const TimedGraph& graph) {
  const auto most = std::ranges::max_element(graph.violated) - graph.violated.begin();
  return std::string(NameOf(static_cast<EdgeKind>(most)));
}

std::string WhyBroken(const JobGraph& job, const Identity& identity) {
  if (identity.median_percent > kMedianOff || identity.p95_percent > kP95Off) {
    return fmt::format(
        "the replay of the steps as they were is {:.1f} % off at the median and {:.1f} % at p95; "
        "the edges that do not fit are most of the kind '{}'",
        identity.median_percent, identity.p95_percent, WorstEdges(job.graph));
  }
  if (static_cast<double>(identity.violated) * 100 >
      kViolatedPercent * static_cast<double>(identity.edges)) {
    return fmt::format("{} of {} edges contradict the trace, most of the kind '{}'",
                       identity.violated, identity.edges, WorstEdges(job.graph));
  }
  if (identity.kept_gap_percent > kGapPercent) {
    return fmt::format(
        "{:.1f} % of the time in which devices stood idle has no edge that explains it: work waits "
        "there for something that was not recorded",
        identity.kept_gap_percent);
  }
  return job.missing.empty() ? "" : "edges are missing: " + job.missing.front();
}

// What the last counted steps of all ranks waited for.
class CriticalWalk {
 public:
  CriticalWalk(const Run& run, const Replayed& replayed)
      : run_(run), job_(JobGraphOf(run)), replayed_(replayed) {}

  std::vector<CriticalPart> Walk() {
    for (uint32_t at = FindSteps(); at != kNone && replayed_.end[at] > counted_.front().first;) {
      Add(at, Counted(replayed_.begin[at], replayed_.end[at]));
      const uint32_t edge = replayed_.last_edge[at];
      if (edge == kNone) break;
      const uint32_t before = job_.graph.from[edge];
      sums_[{job_.graph.trace[at], std::string(WaitName(job_.graph.edge_kind[edge]))}] +=
          Counted(replayed_.end[before], replayed_.begin[at]);
      at = before;
    }
    std::vector<CriticalPart> parts;
    for (const auto& [key, ns] : sums_) {
      const double per_step = ns / static_cast<double>(steps_);
      parts.push_back({key.first, key.second, static_cast<int64_t>(per_step)});
    }
    std::ranges::stable_sort(parts, std::greater(), &CriticalPart::ns);
    return parts;
  }

 private:
  // Of the rank that ends last: its counted steps, and its last node.
  uint32_t FindSteps() {
    uint32_t last = kNone;
    for (const std::vector<StepEnd>& steps : job_.steps) {
      std::vector<Interval> counted;
      int64_t before = INT64_MIN;
      uint32_t node = kNone;
      for (const StepEnd& step : steps) {
        for (const uint32_t of : step.nodes) {
          if (node == kNone || replayed_.end[of] >= replayed_.end[node]) node = of;
        }
        const int64_t end = EndOf(step, replayed_, before);
        if (step.counted && before != INT64_MIN) counted.emplace_back(before, end);
        before = end;
      }
      if (node == kNone || counted.empty()) continue;
      if (last != kNone && replayed_.end[node] <= replayed_.end[last]) continue;
      last = node;
      steps_ = counted.size();
      counted_ = Merged(std::move(counted));
    }
    return counted_.empty() ? kNone : last;
  }
  double Counted(int64_t begin, int64_t end) const {
    return end <= begin ? 0 : static_cast<double>(Length(Within(counted_, begin, end)));
  }
  static std::string_view WaitName(EdgeKind kind) {
    switch (kind) {
      case EdgeKind::kLaunch:
      case EdgeKind::kStream:
      case EdgeKind::kEvent:
        return "until work begins on the device";
      case EdgeKind::kHandOver:
        return "handing over to another thread";
      default:
        return "waking up";
    }
  }
  void Add(uint32_t node, double ns) {
    if (ns <= 0) return;
    const uint32_t t = job_.graph.trace[node];
    const auto add = [&](std::string what, double of) { sums_[{t, std::move(what)}] += of; };
    switch (job_.graph.kind[node]) {
      case NodeKind::kBatch:
        return add("making batches", ns);
      case NodeKind::kTransfer:
        return add("in collectives", ns);
      case NodeKind::kWork:
        return add(TellingKernelName(NameOf(run_.traces[t],
                                            DeviceTimeline(run_.traces[t])[job_.graph.row[node]])),
                   ns);
      default:
        return AddHost(node, ns);
    }
  }
  // By the places that the node had in the trace.
  void AddHost(uint32_t node, double ns) {
    const StepPlaces& places = StepPlacesOf(run_);
    const uint32_t t = job_.graph.trace[node];
    const std::vector<PlacedTime>& pieces = places.pieces[t];
    const int64_t shift =
        SharedClockOf(run_).At(t, run_.traces[t].first_ns) - run_.traces[t].first_ns;
    const int64_t begin = job_.graph.start[node] - shift, end = job_.graph.end(node) - shift;
    auto at = std::ranges::upper_bound(pieces, begin, {}, &PlacedTime::end);
    double placed = 0;
    for (; at != pieces.end() && at->begin < end; ++at) {
      const double part = ns *
                          static_cast<double>(std::min(end, at->end) - std::max(begin, at->begin)) /
                          static_cast<double>(std::max<int64_t>(end - begin, 1));
      sums_[{t, places.names[at->place]}] += part;
      placed += part;
    }
    if (placed < ns) sums_[{t, "in no phase"}] += ns - placed;
  }

  const Run& run_;
  const JobGraph& job_;
  const Replayed& replayed_;
  size_t steps_ = 1;
  std::vector<Interval> counted_;
  std::map<std::pair<uint32_t, std::string>, double> sums_;
};

struct Outcome {
  Replayed replayed;
  std::vector<int64_t> lengths;
};
Result<Outcome> ReplayWith(const Run& run, const std::vector<Change>& changes, Doubt doubt) {
  const JobGraph& job = JobGraphOf(run);
  GraphEdit edit(job.graph);
  for (const Change& change : changes) {
    if (auto failure = ApplyChange(run, change, doubt, &edit)) return *failure;
  }
  Outcome outcome{Replay(job.graph, edit), {}};
  outcome.lengths = StepLengths(job, outcome.replayed);
  return outcome;
}

}  // namespace

Result<Identity> CheckIdentity(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.damage.empty()) continue;
    return Failure{fmt::format("nothing is predicted: {} is cut off or damaged at offset {}: {}",
                               trace.path, trace.damage[0].offset, trace.damage[0].what)};
  }
  const JobGraph& job = JobGraphOf(run);
  if (job.graph.has_cycle) {
    return Failure{
        "what waits for what goes round in a circle: the clocks of ranks, or matched "
        "collectives, contradict each other"};
  }
  const std::vector<int64_t> traced = StepLengths(job, TimesInTrace(job.graph));
  if (traced.empty()) return Failure{"the run has no steps after its warm-up"};
  const Replayed replayed = Replay(job.graph, GraphEdit(job.graph));
  const std::vector<int64_t> lengths = StepLengths(job, replayed);
  Identity identity;
  identity.steps = traced.size();
  identity.disturbed = job.disturbed;
  std::vector<double> off;
  for (size_t i = 0; i < traced.size(); ++i) {
    off.push_back(100.0 * static_cast<double>(std::abs(lengths[i] - traced[i])) /
                  static_cast<double>(std::max<int64_t>(traced[i], 1)));
  }
  std::ranges::sort(off);
  identity.median_percent = Quantile(off, 0.5);
  identity.p95_percent = Quantile(off, 0.95);
  std::vector<double> starts;
  for (uint32_t node = 0; node < job.graph.size(); ++node) {
    starts.push_back(static_cast<double>(std::abs(replayed.begin[node] - job.graph.start[node])));
  }
  std::ranges::sort(starts);
  identity.start_p95_ns = static_cast<int64_t>(Quantile(starts, 0.95));
  identity.violated =
      std::accumulate(job.graph.violated.begin(), job.graph.violated.end(), size_t{0});
  identity.edges = job.graph.from.size() + identity.violated;
  for (const Trace& trace : run.traces) identity.has_device |= !DeviceTimeline(trace).empty();
  if (job.idle_ns > 0) {
    identity.kept_gap_percent =
        100.0 * static_cast<double>(job.kept_gap_ns) / static_cast<double>(job.idle_ns);
  }
  identity.broken = WhyBroken(job, identity);
  return identity;
}

Result<Prediction> Predict(const Run& run, const std::vector<Change>& changes) {
  Prediction prediction;
  const JobGraph& job = JobGraphOf(run);
  const std::vector<int64_t> traced = StepLengths(job, TimesInTrace(job.graph));
  if (traced.empty()) return Failure{"the run has no steps after its warm-up"};
  prediction.before = MedianStep(traced);
  const Result<Outcome> middle = ReplayWith(run, changes, Doubt::kMiddle);
  if (!middle) return Failure{middle.message()};
  prediction.step = prediction.low = prediction.high = MedianStep(middle->lengths);
  for (const Doubt doubt : {Doubt::kLeast, Doubt::kMost}) {
    const Result<Outcome> other = ReplayWith(run, changes, doubt);
    prediction.low = std::min(prediction.low, MedianStep(other->lengths));
    prediction.high = std::max(prediction.high, MedianStep(other->lengths));
  }
  const auto step = static_cast<double>(prediction.step);
  const double gain = std::abs(static_cast<double>(prediction.before) - step);
  const auto doubt =
      static_cast<int64_t>(kRunToRun * step + kOfGain * gain +
                           2 * std::max(StandardError(traced), StandardError(middle->lengths)));
  prediction.low = std::max<int64_t>(prediction.low - doubt, 0);
  prediction.high += doubt;
  prediction.critical = CriticalWalk(run, middle->replayed).Walk();
  return prediction;
}

std::vector<Candidate> PredictAll(const Run& run) {
  std::vector<Candidate> all;
  for (const Change& change : SuggestChanges(run)) {
    Result<Prediction> prediction = Predict(run, {change});
    if (prediction) all.push_back({change, std::move(*prediction)});
  }
  std::ranges::stable_sort(all, {},
                           [](const Candidate& candidate) { return candidate.prediction.step; });
  return all;
}

}  // namespace ranktap::collector
