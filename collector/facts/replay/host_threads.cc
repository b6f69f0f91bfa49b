// What the threads of one rank wait for among each other: a loader's batches, and the thread of the
// backward pass.
#include <algorithm>
#include <map>
#include <vector>

#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/samples/thread_purposes.h"
#include "collector/facts/steps.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kHandsOverNs = 10'000;  // a shorter pause is the thread's own

bool HasWorkers(const Trace& trace) {
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    const std::string_view name = trace.dictionary.String(trace.operators.name[i]);
    if (name.find("_MultiProcessingDataLoaderIter") != name.npos) return true;
  }
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    const std::string_view name = trace.dictionary.String(trace.ranges.name[i]);
    if (name.find("_MultiProcessingDataLoaderIter") != name.npos) return true;
  }
  return PurposesOf(trace).loader_workers() > 0;
}

// How long a thread must be in its loader to have waited for a batch rather than taken one.
int64_t LeastWait(const Trace& trace) {
  constexpr int64_t kTakesNs = 300'000;
  std::vector<int64_t> lengths;
  for (const Step& step : DetectSteps(trace).list) lengths.push_back(step.length());
  if (lengths.empty()) return kTakesNs;
  std::ranges::nth_element(lengths,
                           lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
  return std::max(kTakesNs, lengths[lengths.size() / 2] * 3 / 100);
}

// Workers that rest are not what a batch was waited for. Without samples of them nobody knows.
bool AreBusy(const Trace& trace) {
  constexpr double kLeastBusy = 0.7;
  const ThreadPurposes& purposes = PurposesOf(trace);
  int64_t busy = 0, all = 0;
  for (const HostSample& sample : SamplesOf(trace).all()) {
    if (purposes.LoaderWorkerOf(sample.thread) < 0) continue;
    const LoaderWork work = purposes.WorkOf(sample);
    if (work == LoaderWork::kNone || work == LoaderWork::kStarts) continue;
    all += sample.end - sample.start;
    if (work != LoaderWork::kWaits) busy += sample.end - sample.start;
  }
  return all == 0 || static_cast<double>(busy) >= kLeastBusy * static_cast<double>(all);
}

// When a thread ran operators or called the device's API, merged where the pause between is short.
std::vector<Interval> ActivityOf(const Trace& trace, uint16_t writer) {
  std::vector<Interval> set;
  const auto add = [&](const auto& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      if (table.writer[i] == writer) set.emplace_back(table.start[i], table.end[i]);
    }
  };
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool is_operator = ops.kind[i] == static_cast<uint8_t>(OperatorKind::kOperator);
    if (is_operator && ops.writer[i] == writer) set.emplace_back(ops.start[i], ops.end[i]);
  }
  add(trace.api_calls);
  set = Merged(std::move(set));
  std::vector<Interval> joined;
  for (const Interval& one : set) {
    if (!joined.empty() && one.first - joined.back().second < kHandsOverNs) {
      joined.back().second = one.second;
    } else {
      joined.push_back(one);
    }
  }
  return joined;
}

// The last interval of `set` that ends in (since, until]; nullptr: none.
const Interval* LastEnded(const std::vector<Interval>& set, int64_t since, int64_t until) {
  const auto after = std::ranges::upper_bound(set, until, {}, &Interval::second);
  if (after == set.begin() || std::prev(after)->second <= since) return nullptr;
  return &*std::prev(after);
}

// A pause of `waiter` in which the other one ended something.
void AddPauses(const std::vector<Interval>& waiter, const std::vector<Interval>& other,
               uint32_t lane, uint32_t other_lane, JobLinks* links) {
  for (size_t i = 0; i + 1 < waiter.size(); ++i) {
    const int64_t since = waiter[i].second, until = waiter[i + 1].first;
    const Interval* const ended = LastEnded(other, since, until);
    // The one that runs on past the pause's end was not waited for.
    if (ended == nullptr) continue;
    const Moment returned = links->Return(lane, since, until);
    links->LinkAsTraced(links->Point(other_lane, ended->second), returned, EdgeKind::kHandOver);
  }
}

}  // namespace

uint16_t MainWriter(const Trace& trace) {
  std::map<uint16_t, size_t> votes;
  for (const uint32_t row : RangesIn(trace, kStepDomain)) ++votes[trace.ranges.writer[row]];
  const Operators& ops = trace.operators;
  if (votes.empty()) {
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string_view name = trace.dictionary.String(ops.name[i]);
      if (name.starts_with("ProfilerStep#")) ++votes[ops.writer[i]];
    }
  }
  const auto count = [&votes](const auto& table) {
    for (size_t i = 0; i < table.size(); ++i) ++votes[table.writer[i]];
  };
  if (votes.empty()) count(trace.ranges);
  if (votes.empty()) count(trace.api_calls);
  if (votes.empty()) {
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops.scope.At(i) != kBackwardScope) ++votes[ops.writer[i]];
    }
  }
  const auto most =
      std::ranges::max_element(votes, {}, [](const auto& entry) { return entry.second; });
  return most == votes.end() ? UINT16_MAX : most->first;
}

void AddLoader(uint32_t t, JobLinks* links) {
  const Trace& trace = links->run().traces[t];
  const uint32_t lane = links->job().main_lane[t];
  if (lane == kNone || !HasWorkers(trace)) return;
  const std::vector<Interval> fetches = DataLoading(trace);
  const int64_t least = LeastWait(trace);
  const auto waits = [least](const Interval& fetch) { return fetch.second - fetch.first >= least; };
  // Workers that are ahead now and then rest: how long a batch takes them is not seen.
  const auto waited = static_cast<size_t>(std::ranges::count_if(fetches, waits));
  if (waited * 2 <= fetches.size() || !AreBusy(trace)) return;
  GraphBuilder& builder = links->builder();
  const size_t workers = std::max<size_t>(PurposesOf(trace).loader_workers(), 1);
  std::vector<uint32_t> batches;
  for (const auto& [begin, end] : fetches) {
    if (!waits({begin, end})) continue;
    // A worker makes one batch after the other; in turn with the others.
    const size_t number = batches.size();
    const uint32_t before = number < workers ? kNone : batches[number - workers];
    const int64_t since = before == kNone ? links->At(t, trace.first_ns) : builder.end(before);
    const uint32_t batch =
        builder.AddNode(NodeKind::kBatch, t, kNone, since, links->At(t, end) - since);
    builder.AddEdge(before, batch, EdgeKind::kLoader);
    for (size_t other = 1; other <= std::min(number, kMostWorkers); ++other) {
      if (other == workers) continue;
      builder.AddEdge(batches[number - other], batch, EdgeKind::kOtherWorkers);
    }
    batches.push_back(batch);
    links->LinkAsTraced(links->Node(batch), links->Return(lane, begin, end), EdgeKind::kLoader);
  }
  links->job().batches[t] = std::move(batches);
}

void AddHandOvers(uint32_t t, JobLinks* links) {
  const Trace& trace = links->run().traces[t];
  const uint32_t lane = links->job().main_lane[t];
  if (lane == kNone) return;
  const uint16_t main = links->job().lanes[lane].writer();
  std::map<uint16_t, size_t> backward;
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    const bool is_backward =
        trace.operators.scope.At(i) == kBackwardScope ||
        trace.dictionary.String(trace.operators.name[i]).starts_with("autograd::engine::evaluate");
    if (is_backward && trace.operators.writer[i] != main) ++backward[trace.operators.writer[i]];
  }
  if (backward.empty()) return;
  const std::vector<Interval> of_main = ActivityOf(trace, main);
  for (const auto& [writer, count] : backward) {
    const std::vector<Interval> of_other = ActivityOf(trace, writer);
    const uint32_t other_lane = links->LaneOf(t, writer);
    AddPauses(of_other, of_main, other_lane, lane, links);
    AddPauses(of_main, of_other, lane, other_lane, links);
  }
}

}  // namespace ranktap::collector
