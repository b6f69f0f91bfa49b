#include "collector/facts/samples/taken_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/samples/host_counts.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/time_by_text.h"

namespace ranktap::collector {
namespace {

int64_t PartOf(int64_t count, int64_t ns, int64_t length) {
  return static_cast<int64_t>(static_cast<double>(count) * static_cast<double>(ns) /
                              static_cast<double>(length));
}

int64_t Overlap(std::span<const Interval> intervals, int64_t start, int64_t end) {
  int64_t ns = 0;
  auto at = std::ranges::upper_bound(intervals, start, {}, &Interval::second);
  for (; at != intervals.end() && at->first < end; ++at) {
    ns += std::min(end, at->second) - std::max(start, at->first);
  }
  return ns;
}

// What the other threads ran meanwhile.
class OtherThreads {
 public:
  explicit OtherThreads(const HostSamples& samples) : samples_(samples) {
    for (const HostSample& sample : samples.all()) {
      if (sample.thread == samples.main_thread() || sample.cpu_ns == 0) continue;
      if (sample.start < sample.end) by_thread_[sample.thread].push_back(&sample);
    }
    for (auto& [thread, list] : by_thread_) {
      std::ranges::stable_sort(list, {}, [](const HostSample* sample) { return sample->end; });
    }
  }

  // `ns` is divided as their time on a CPU was.
  void Add(int64_t start, int64_t end, int64_t ns, TimeByText* to) const {
    std::map<std::string, int64_t> ran;
    int64_t all = 0;
    for (const auto& [thread, list] : by_thread_) {
      auto at = std::ranges::upper_bound(list, start, {},
                                         [](const HostSample* sample) { return sample->end; });
      for (; at != list.end() && (*at)->start < end; ++at) {
        const HostSample& sample = **at;
        const int64_t shared = std::min(end, sample.end) - std::max(start, sample.start);
        const int64_t cpu = PartOf(sample.cpu_ns, shared, sample.end - sample.start);
        ran[samples_.Describe(samples_.LineOf(sample.frame))] += cpu;
        all += cpu;
      }
    }
    if (all == 0) return to->Add("", ns);
    for (const auto& [text, cpu] : ran) to->Add(text, PartOf(cpu, ns, all));
  }

 private:
  const HostSamples& samples_;
  std::map<uint32_t, std::vector<const HostSample*>> by_thread_;
};

// The files that a look met the main thread in.
class ReadFiles {
 public:
  explicit ReadFiles(const HostSamples& samples) : reads_(samples.reads()) {}

  void Add(const HostSample& sample, int64_t ns) {
    auto at = std::ranges::upper_bound(reads_, sample.start, {}, &FileRead::time);
    const auto end = std::ranges::upper_bound(at, reads_.end(), sample.end, {}, &FileRead::time);
    if (at == end) return;
    for (const int64_t each = ns / (end - at); at != end; ++at) files_.Add(at->path, each);
  }
  std::string Most() const { return files_.MostWithTime().first; }

 private:
  const std::vector<FileRead>& reads_;
  TimeByFile files_;
};

void AddProcess(const Trace& trace, std::span<const Interval> intervals, TakenTime* to) {
  int64_t used = 0, seen = 0;
  for (const HostCount& count : CountsOf(trace).host()) {
    const int64_t length = count.end - count.start;
    const int64_t ns = Overlap(intervals, count.start, count.end);
    seen += ns;
    used += PartOf(count.others_ran_ns, ns, length);
    to->throttled_ns += PartOf(count.throttled_ns, ns, length);
    to->throttled_periods += PartOf(count.throttled_periods, ns, length);
  }
  for (const ThreadCount& count : CountsOf(trace).threads()) {
    const int64_t ns = Overlap(intervals, count.start, count.end);
    used += PartOf(count.ran_ns, ns, count.end - count.start);
  }
  if (seen > 0) to->used_cpus = static_cast<double>(used) / static_cast<double>(seen);
  to->throttled_ns = std::min(to->throttled_ns, to->queued.ns);
}

}  // namespace

TakenTime TakenIn(const Trace& trace, std::span<const Interval> intervals) {
  const HostSamples& samples = SamplesOf(trace);
  const OtherThreads others(samples);
  TakenTime taken;
  ReadFiles files(samples);
  TimeByText queued, gil, holders, reads, faults;
  double fault_count = 0;  // of a sample that lies in a step in part, a part
  for (const Interval& interval : intervals) {
    samples.ForEachOfMain(
        interval.first, interval.second, [&](const HostSample& sample, int64_t ns) {
          const int64_t length = sample.end - sample.start;
          const int64_t no_cpu = std::min(PartOf(sample.queued_ns, ns, length), ns);
          const int64_t waited =
              std::max<int64_t>(ns - PartOf(sample.cpu_ns, ns, length) - no_cpu, 0);
          const std::string line = samples.Describe(samples.LineOf(sample.frame));
          taken.sampled_ns += ns;
          queued.Add(line, no_cpu);
          if (sample.state == proto::SampleState::kWantsGil) {
            gil.Add(line, waited);
            const int64_t start = std::max(interval.first, sample.start);
            others.Add(start, std::min(interval.second, sample.end), waited, &holders);
            return;
          }
          // A page that is not in memory is read as well.
          if (sample.major_faults > 0) {
            faults.Add(line, waited);
            fault_count += static_cast<double>(sample.major_faults) * static_cast<double>(ns) /
                           static_cast<double>(std::max<int64_t>(length, 1));
          } else if (sample.read_bytes > 0) {
            reads.Add(line, waited);
            files.Add(sample, waited);
            taken.reads.count += PartOf(sample.read_bytes, ns, length);
          }
        });
  }
  for (const auto& [from, to] :
       {std::pair(&queued, &taken.queued), std::pair(&gil, &taken.gil),
        std::pair(&reads, &taken.reads), std::pair(&faults, &taken.faults)}) {
    to->ns = from->total_ns();
    to->line = from->Most();
  }
  taken.faults.count = std::llround(fault_count);
  taken.gil_holder = holders.Most();
  taken.read_files = files.Most();
  AddProcess(trace, intervals, &taken);
  return taken;
}

const std::vector<TakenTime>& TakenOfRanks(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  return run.memo.Get<std::vector<TakenTime>>([&] {
    std::vector<TakenTime> all;
    for (size_t t = 0; t < run.traces.size(); ++t) {
      std::vector<Interval> counted;
      for (const Step& step : waterfalls[t].steps.list) {
        if (!step.warm_up) counted.emplace_back(step.start, step.end);
      }
      all.push_back(TakenIn(run.traces[t], Merged(std::move(counted))));
    }
    return all;
  });
}

SharedCpus CpusAround(const Run& run, uint32_t trace) {
  const std::vector<TakenTime>& taken = TakenOfRanks(run);
  const std::vector<uint32_t> own = CountsOf(run.traces[trace]).Cpus();
  std::set<uint32_t> all(own.begin(), own.end());
  SharedCpus shared;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    if (run.traces[t].info.host != run.traces[trace].info.host) continue;
    const std::vector<uint32_t> theirs = CountsOf(run.traces[t]).Cpus();
    const auto is_own = [&own](uint32_t cpu) { return std::ranges::binary_search(own, cpu); };
    if (std::ranges::none_of(theirs, is_own)) continue;
    all.insert(theirs.begin(), theirs.end());
    shared.used += taken[t].used_cpus;
    ++shared.ranks;
  }
  shared.cpus = all.size();
  return shared;
}

}  // namespace ranktap::collector
