#include "collector/facts/samples/loader_line.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/framework/program_settings.h"
#include "collector/facts/numbers/interval_union.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/thread_purposes.h"
#include "collector/facts/samples/time_by_text.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kFewestLoaderLooks = 10;

struct LineOfLoader {
  int64_t ns = 0, looks = 0;
};

using LoaderLines = std::unordered_map<std::string, LineOfLoader>;

void AddTo(LoaderLines* lines, const HostSamples& samples, const HostSample& sample, int64_t ns) {
  const std::string text = samples.Describe(samples.LineOf(sample.frame));
  if (text.empty()) return;
  (*lines)[text].ns += ns;
  (*lines)[text].looks += sample.looks;
}

// The line that has more than half of `all_ns`, with its time.
std::pair<std::string, int64_t> MostOf(const LoaderLines& lines, int64_t all_ns) {
  for (const auto& [text, line] : lines) {
    if (line.ns * 2 > all_ns && line.looks >= kFewestLoaderLooks) return {text, line.ns};
  }
  return {};
}

struct FilesOfLoader {
  TimeByFile files;
  TimeByText lines;

  void Add(const HostSamples& samples, const HostSample& sample, const Interval& counted) {
    for (const ChildRead& child : samples.ReadsOf(sample)) {
      if (child.read.time <= counted.first || child.read.time > counted.second) continue;
      files.Add(child.read.path, child.ns);
      lines.Add(samples.Describe(samples.LineOf(sample.frame)), child.ns);
    }
  }
  void Tell(LoaderLine* found) const {
    const auto [path, ns] = files.MostWithTime();
    if (4 * ns <= found->busy_ns) return;
    found->read_files = path;
    found->read_ns = std::min(ns, found->busy_ns);
    found->read_line = lines.Most();
  }
};

// From the first counted step to the last: workers fetch ahead, so a moment of theirs is not of one
// step.
Interval CountedSpan(const RankWaterfall& waterfall) {
  Interval span{INT64_MAX, INT64_MIN};
  for (const Step& step : waterfall.steps.list) {
    if (step.warm_up) continue;
    span.first = std::min(span.first, step.start);
    span.second = std::max(span.second, step.end);
  }
  return span;
}

bool MakesBatch(LoaderWork work) {
  return work >= LoaderWork::kReads && work <= LoaderWork::kCollates;
}

void FindLateWorker(const std::vector<int64_t>& busy, LoaderLine* found) {
  constexpr size_t kFewest = 3;  // of two nobody knows which is as it should be
  if (busy.size() < kFewest) return;
  std::vector<int64_t> sorted = busy;
  std::ranges::sort(sorted);
  const int64_t median = sorted[(sorted.size() - 1) / 2];
  if (sorted.back() * 2 <= median * 3) return;
  found->late_worker = static_cast<int>(std::ranges::max_element(busy) - busy.begin());
  found->late_ns = sorted.back();
  found->median_ns = median;
}

// Batches take so much of all workers' time a step; what the step takes without the loss must be as
// long as one worker's part of that.
uint32_t WorkersWanted(const Trace& trace, const RankWaterfall& waterfall, int64_t busy_ns,
                       double on_cpu) {
  const int64_t lost = waterfall.mean[static_cast<size_t>(Cause::kDataLoading)];
  const double rest = static_cast<double>(std::max<int64_t>(waterfall.mean_step - lost, 1));
  const double busy = static_cast<double>(busy_ns) / static_cast<double>(waterfall.counted);
  const double wanted = std::ceil(busy / rest);
  constexpr double kMostWorkers = 64;
  const auto settings = SettingsOf(trace);
  const double cpus = settings ? static_cast<double>(settings->cpus) : 0;
  // Beside the training itself.
  const bool has_room = cpus <= 0 || wanted * on_cpu + 1 <= cpus;
  return wanted <= kMostWorkers && has_room ? static_cast<uint32_t>(wanted) : 0;
}

}  // namespace

LoaderQueue QueueOfLoader(const Trace& trace, const RankWaterfall& waterfall) {
  LoaderQueue queue;
  const auto [first, last] = CountedSpan(waterfall);
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    const uint64_t payload = trace.ranges.payload.At(row);
    const int64_t start = trace.ranges.start[row];
    if (payload == 0 || start < first || start >= last) continue;
    if (trace.dictionary.String(trace.ranges.name[row]) != proto::kDataPhase) continue;
    ++queue.asked;
    queue.empty += payload == 1 ? 1 : 0;
  }
  return queue;
}

LoaderLine FindLoaderLine(const Trace& trace, const RankWaterfall& waterfall) {
  LoaderLine found;
  const HostSamples& samples = SamplesOf(trace);
  const ThreadPurposes& purposes = PurposesOf(trace);
  found.workers = purposes.loader_workers();
  if (found.workers == 0 || waterfall.counted == 0) return {};
  const auto [first, last] = CountedSpan(waterfall);
  LoaderLines lines, starting;
  FilesOfLoader read;
  std::vector<int64_t> busy(found.workers);
  double cpu_ns = 0;
  for (const HostSample& sample : samples.all()) {
    const int64_t ns = std::min(last, sample.end) - std::max(first, sample.start);
    if (ns <= 0) continue;
    const int worker = purposes.LoaderWorkerOf(sample.thread);
    const LoaderWork work = purposes.WorkOf(sample);
    if (work == LoaderWork::kPins) found.pinning_ns += ns;
    if (worker >= 0 && work == LoaderWork::kStarts) {
      found.starting_ns += ns;
      AddTo(&starting, samples, sample, ns);
    }
    if (worker < 0 || !MakesBatch(work)) continue;
    busy[static_cast<size_t>(worker)] += ns;
    found.busy_ns += ns;
    cpu_ns += static_cast<double>(sample.cpu_ns) * static_cast<double>(ns) /
              static_cast<double>(sample.end - sample.start);
    AddTo(&lines, samples, sample, ns);
    read.Add(samples, sample, {first, last});
  }
  found.all_ns = (last - first) * found.workers;
  constexpr int64_t kLeastStarting = 4;
  const bool are_starting = found.starting_ns * kLeastStarting > found.all_ns;
  if (are_starting) {
    found.starting_text = MostOf(starting, found.starting_ns).first;
  } else {
    found.starting_ns = 0;
  }
  // Workers that wait for work most of the time are not why a batch is late.
  const bool are_busy = *std::ranges::max_element(busy) * 2 > last - first;
  if (found.pinning_ns * 2 <= last - first) found.pinning_ns = 0;
  if (!are_busy && !are_starting && found.pinning_ns == 0) return {};
  if (!are_busy) return found;
  FindLateWorker(busy, &found);
  const uint32_t wanted =
      WorkersWanted(trace, waterfall, found.busy_ns, cpu_ns / static_cast<double>(found.busy_ns));
  if (wanted > found.workers) found.wanted = wanted;
  std::tie(found.text, found.ns) = MostOf(lines, found.busy_ns);
  read.Tell(&found);
  return found;
}

}  // namespace ranktap::collector
