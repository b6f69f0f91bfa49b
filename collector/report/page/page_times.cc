#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/steps.h"
#include "collector/file/json.h"
#include "collector/report/page/page_pictures.h"

namespace ranktap::collector {
namespace {

constexpr size_t kKernels = 30, kCollectives = 12, kModules = 60;
constexpr size_t kMostKernelCells = 240'000;  // of the kernels; the others have as many buckets

int64_t Microseconds(int64_t ns) { return (ns + 500) / 1'000; }

struct Buckets {
  size_t traces = 1, count = 1, steps_per_bucket = 1;
  size_t cells() const { return traces * count; }
  size_t At(size_t trace, size_t step) const { return trace * count + step / steps_per_bucket; }
};

Buckets BucketsOf(const Run& run) {
  size_t steps = 1;
  for (const RankWaterfall& rank : ComputeWaterfalls(run)) {
    steps = std::max(steps, rank.steps.list.size());
  }
  Buckets buckets;
  buckets.traces = std::max<size_t>(run.traces.size(), 1);
  buckets.count = std::clamp<size_t>(kMostKernelCells / kKernels / buckets.traces, 1, steps);
  buckets.steps_per_bucket = (steps + buckets.count - 1) / buckets.count;
  return buckets;
}

// The waterfall's steps of a trace, and when the host and the devices were in them.
class StepPlaces {
 public:
  explicit StepPlaces(const Run& run, size_t trace)
      : devices_(ComputeWaterfalls(run)[trace].steps.list) {
    for (size_t i = 0; i < devices_.size(); ++i) by_number_[devices_[i].number] = i;
    const StepList& host = DetectSteps(run.traces[trace]);
    if (!host.on_device) host_ = host.list;
  }
  // Index of the step; -1: none.
  int64_t OnDevice(int64_t time) const { return At(devices_, time); }
  int64_t OnHost(int64_t time) const {
    if (host_.empty()) return OnDevice(time);
    const int64_t at = At(host_, time);
    if (at < 0) return -1;
    const auto found = by_number_.find(host_[static_cast<size_t>(at)].number);
    return found == by_number_.end() ? -1 : static_cast<int64_t>(found->second);
  }

 private:
  static int64_t At(const std::vector<Step>& steps, int64_t time) {
    const auto after = std::ranges::upper_bound(steps, time, {}, &Step::start);
    if (after == steps.begin() || std::prev(after)->end <= time) return -1;
    return std::prev(after) - steps.begin();
  }
  const std::vector<Step>& devices_;
  std::vector<Step> host_;
  std::unordered_map<int64_t, size_t> by_number_;
};

// ns by trace and bucket of steps, of each thing that has a row in a table.
template <typename Key>
class TimesOf {
 public:
  explicit TimesOf(const Buckets& buckets) : buckets_(buckets) {}
  void Add(const Key& key, size_t trace, int64_t step, int64_t ns) {
    if (step < 0) return;
    std::vector<int64_t>& times = times_[key];
    if (times.empty()) times.resize(buckets_.cells());
    times[buckets_.At(trace, static_cast<size_t>(step))] += ns;
  }
  // The `count` with the most time, the most first: `name` fills in whose they are.
  template <typename Name>
  Json Longest(size_t count, Name name) const {
    std::vector<std::pair<int64_t, const Key*>> order;
    for (const auto& [key, times] : times_) {
      int64_t sum = 0;
      for (const int64_t ns : times) sum += ns;
      order.emplace_back(-sum, &key);
    }
    std::ranges::stable_sort(order, {}, [](const auto& entry) { return entry.first; });
    order.resize(std::min(order.size(), count));
    Json longest = Json::array();
    for (const auto& [sum, key] : order) {
      Json us = Json::array();
      for (const int64_t ns : times_.at(*key)) us.push_back(Microseconds(ns));
      Json of = name(*key);
      of["us"] = std::move(us);
      longest.push_back(std::move(of));
    }
    return longest;
  }

 private:
  const Buckets& buckets_;
  std::map<Key, std::vector<int64_t>> times_;
};

using Names = TimesOf<std::string>;

void AddKernels(const Trace& trace, size_t t, const StepPlaces& steps, Names* times) {
  std::unordered_map<uint32_t, std::string> names;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    if (span.table != DeviceSpan::Table::kKernel) continue;
    std::string& name = names[span.name];
    if (name.empty()) name = NameOf(trace, span);
    times->Add(name, t, steps.OnDevice(span.start), span.end - span.start);
  }
}

void AddModules(const Trace& trace, size_t t, const StepPlaces& steps, Names* times) {
  for (const ModuleSpan& span : ModuleSpans(trace)) {
    times->Add(std::string(trace.dictionary.String(span.name)), t, steps.OnHost(span.start),
               span.end - span.start);
  }
}

using OneCollective = std::tuple<std::string, std::string, int64_t>;  // group, type, bytes

Json Collectives(const Run& run, const Buckets& buckets, const std::vector<StepPlaces>& steps) {
  TimesOf<OneCollective> times(buckets);
  for (const auto* const calls : {&MatchCollectives(run), &MatchHostCollectives(run)}) {
    for (const CollectiveRun& call : *calls) {
      for (const CollectiveMember& member : call.members) {
        const StepPlaces& of = steps[member.trace];
        const int64_t step =
            member.work == kNone ? of.OnHost(member.start) : of.OnDevice(member.start);
        times.Add({call.group(), call.type(), call.bytes}, member.trace, step, member.length());
      }
    }
  }
  return times.Longest(kCollectives, [](const OneCollective& key) -> Json {
    const auto& [group, type, bytes] = key;
    return {{"group", group}, {"type", type}, {"bytes", bytes == 0 ? Json() : Json(bytes)}};
  });
}

}  // namespace

Json PageTimes(const Run& run) {
  const Buckets buckets = BucketsOf(run);
  std::vector<StepPlaces> steps;
  Names kernels(buckets), modules(buckets);
  for (size_t t = 0; t < run.traces.size(); ++t) {
    steps.emplace_back(run, t);
    AddKernels(run.traces[t], t, steps[t], &kernels);
    AddModules(run.traces[t], t, steps[t], &modules);
  }
  const auto named = [](const std::string& name) -> Json { return {{"name", name}}; };
  return {{"buckets", buckets.count},
          {"steps_per_bucket", buckets.steps_per_bucket},
          {"kernels", kernels.Longest(kKernels, named)},
          {"collectives", Collectives(run, buckets, steps)},
          {"modules", modules.Longest(kModules, named)}};
}

}  // namespace ranktap::collector
