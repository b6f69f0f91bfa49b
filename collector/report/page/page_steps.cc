#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "collector/report/cells.h"
#include "collector/report/page/page_pictures.h"
#include "collector/report/steps/waterfall.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using nlohmann::json;

constexpr size_t kMostSteps = 200'000;  // of all ranks, with their causes
constexpr size_t kKernels = 30, kMostCells = 240'000;

int64_t Us(int64_t ns) { return (ns + 500) / 1'000; }

json CausesOf(const RankWaterfall& rank) {
  json causes = json::object();
  for (size_t c = 0; c < kCauses; ++c) {
    const auto has = [c](const CauseTimes& times) { return times[c] != 0; };
    if (std::none_of(rank.times.begin(), rank.times.end(), has)) continue;
    json& values = causes[std::string(NameOf(static_cast<Cause>(c)))] = json::array();
    for (const CauseTimes& times : rank.times) values.push_back(Us(times[c]));
  }
  return causes;
}

size_t CountSteps(const Run& run) {
  size_t steps = 0;
  for (const RankWaterfall& rank : ComputeWaterfalls(run)) steps += rank.steps.list.size();
  return steps;
}

// Steps in which a rank's kernels ran, by name.
class KernelTimes {
 public:
  KernelTimes(const Run& run, size_t buckets, size_t steps_per_bucket)
      : run_(run), buckets_(buckets), steps_per_bucket_(steps_per_bucket) {
    for (size_t t = 0; t < run.traces.size(); ++t) AddTrace(t);
  }
  std::vector<std::pair<std::string, std::vector<int64_t>>> Longest(size_t count) {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [name, times] : times_) {
      int64_t sum = 0;
      for (const int64_t ns : times) sum += ns;
      order.emplace_back(-sum, name);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), count));
    std::vector<std::pair<std::string, std::vector<int64_t>>> longest;
    for (const auto& [sum, name] : order) longest.emplace_back(name, std::move(times_[name]));
    return longest;
  }

 private:
  void AddTrace(size_t t) {
    const Trace& trace = run_.traces[t];
    const std::vector<Step>& steps = ComputeWaterfalls(run_)[t].steps.list;
    std::unordered_map<uint32_t, std::vector<int64_t>*> by_name;
    size_t step = 0;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      while (step < steps.size() && steps[step].end <= span.start) ++step;
      if (step == steps.size()) break;
      if (span.table != DeviceSpan::Table::kKernel || span.start < steps[step].start) continue;
      std::vector<int64_t>*& times = by_name[span.name];
      if (times == nullptr) {
        times = &times_[NameOf(trace, span)];
        times->resize(run_.traces.size() * buckets_);
      }
      (*times)[t * buckets_ + step / steps_per_bucket_] += span.end - span.start;
    }
  }

  const Run& run_;
  const size_t buckets_, steps_per_bucket_;
  std::unordered_map<std::string, std::vector<int64_t>> times_;
};

}  // namespace

json PageSteps(const Run& run) {
  json ranks = json::array();
  const bool has_causes = CountSteps(run) <= kMostSteps;
  const int64_t first = FirstEvent(run);
  for (size_t t = 0; t < run.traces.size(); ++t) {
    const RankWaterfall& rank = ComputeWaterfalls(run)[t];
    if (rank.steps.source.empty()) continue;
    json of = {
        {"name", RankName(run.traces[t])}, {"trace", t},          {"numbers", json::array()},
        {"start_us", json::array()},       {"us", json::array()}, {"warm_up", json::array()}};
    of["rank"] = run.traces[t].info.rank ? json(*run.traces[t].info.rank) : json();
    for (size_t i = 0; i < rank.steps.list.size(); ++i) {
      const Step& step = rank.steps.list[i];
      of["numbers"].push_back(step.number);
      of["start_us"].push_back(Us(step.start - first));
      of["us"].push_back(Us(step.length()));
      if (step.warm_up) of["warm_up"].push_back(i);
    }
    of["causes"] = has_causes ? CausesOf(rank) : json::object();
    ranks.push_back(std::move(of));
  }
  return ranks;
}

json PageKernels(const Run& run) {
  size_t steps = 1;
  for (const RankWaterfall& rank : ComputeWaterfalls(run)) {
    steps = std::max(steps, rank.steps.list.size());
  }
  const size_t ranks = std::max<size_t>(run.traces.size(), 1);
  const size_t buckets = std::clamp<size_t>(kMostCells / kKernels / ranks, 1, steps);
  const size_t steps_per_bucket = (steps + buckets - 1) / buckets;
  json kernels = json::array();
  for (auto& [name, times] : KernelTimes(run, buckets, steps_per_bucket).Longest(kKernels)) {
    json us = json::array();
    for (const int64_t ns : times) us.push_back(Us(ns));
    kernels.push_back({{"name", name}, {"us", std::move(us)}});
  }
  return {{"buckets", buckets},
          {"steps_per_bucket", steps_per_bucket},
          {"kernels", std::move(kernels)}};
}

}  // namespace ranktap::collector
