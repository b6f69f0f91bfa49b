#include "collector/report/device/usage_summary.h"
#include "collector/report/reports.h"

#include <algorithm>
#include <map>

#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {
namespace {

struct DeviceUse {
  const Trace* trace = nullptr;
  uint32_t device = 0;
  std::vector<Interval> kernels, work, compute, comm, overlap;  // merged
  std::vector<Interval> steps;  // that launched kernels, from first start to last end
  int64_t start() const { return kernels.front().first; }
  int64_t end() const { return kernels.back().second; }
  int64_t span() const { return end() - start(); }
};

bool IsKernel(const DeviceSpan& span) {
  return span.table == DeviceSpan::Table::kKernel || span.table == DeviceSpan::Table::kGraphLaunch;
}

// What one device did, its work by start.
class UseFinder {
 public:
  UseFinder(const Trace& trace, uint32_t device)
      : use_{.trace = &trace, .device = device}, steps_(trace, DetectSteps(trace)) {
    // As much each time: blocks that another gave back are taken (KeepLargeBlocks). Sets that grew
    // were copied, and half of the table was page faults.
    for (std::vector<Interval>* const set : {&use_.kernels, &use_.work, &use_.compute}) {
      set->reserve(DeviceTimeline(trace).size());
    }
  }

  uint32_t device() const { return use_.device; }
  void Add(const DeviceSpan& span) {
    const Interval interval(span.start, span.end);
    Append(interval, &use_.work);
    if (span.kind == WorkKind::kCompute) Append(interval, &use_.compute);
    if (span.kind == WorkKind::kCommunication) Append(interval, &use_.comm);
    if (!IsKernel(span)) return;
    Append(interval, &use_.kernels);
    const int64_t step = steps_.IndexOf(span);
    if (step < 0) return;
    const auto index = static_cast<size_t>(step);
    if (index >= place_.size()) place_.resize(index + 1, kNone);
    if (place_[index] == kNone) {
      place_[index] = static_cast<uint32_t>(use_.steps.size());
      use_.steps.push_back(interval);
    }
    int64_t& end = use_.steps[place_[index]].second;
    end = std::max(end, span.end);
  }
  DeviceUse Take() {
    use_.overlap = Intersection(use_.comm, use_.compute);
    return std::move(use_);
  }

 private:
  DeviceUse use_;
  StepFinder steps_;
  std::vector<uint32_t> place_;  // in use_.steps, by step
};

// By rank and device; only those that ran a kernel.
std::vector<DeviceUse> FindUse(const Run& run) {
  std::vector<DeviceUse> found;
  for (const Trace& trace : run.traces) {
    if (!HasStarts(trace)) continue;
    std::map<uint32_t, UseFinder> devices;
    UseFinder* last = nullptr;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      if (last == nullptr || last->device() != span.device) {
        last = &devices.try_emplace(span.device, trace, span.device).first->second;
      }
      last->Add(span);
    }
    for (auto& [device, finder] : devices) {
      DeviceUse use = finder.Take();
      if (!use.kernels.empty()) found.push_back(std::move(use));
    }
  }
  return found;
}

int64_t BusyTime(const DeviceUse& use) { return Length(Within(use.work, use.start(), use.end())); }

Cell TrainTimeRatio(const DeviceUse& use) {
  if (use.steps.empty()) return {};
  int64_t training = 0;
  for (const auto& [start, end] : use.steps) training += end - start;
  return Percent(training, use.span());
}

const ColumnsOf<DeviceUse> kUseColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const DeviceUse& use) { return RankCell(*use.trace); }},
    {"device", Unit::kCount, kDeviceMeaning,
     [](const DeviceUse& use) { return int64_t{use.device}; }},
    {"gpu_usage_ratio", Unit::kPercent,
     "The share of the span in which kernels run, as MegEngine defines it.",
     [](const DeviceUse& use) { return Percent(Length(use.kernels), use.span()); }},
    {"train_time_ratio", Unit::kPercent,
     "The share of the span that steps take, each from first to last kernel (MegEngine).",
     [](const DeviceUse& use) { return TrainTimeRatio(use); }},
    {"busy_percent", Unit::kPercent,
     "The share of the span in which the device works, copies included.",
     [](const DeviceUse& use) { return Percent(BusyTime(use), use.span()); }},
    {"kernel_ns", Unit::kNs, "The time in which kernels run.",
     [](const DeviceUse& use) { return Length(use.kernels); }},
    {"span_ns", Unit::kNs, "The time from the first kernel to the last.",
     [](const DeviceUse& use) { return use.span(); }},
    {"steps", Unit::kCount, "The number of steps.",
     [](const DeviceUse& use) { return static_cast<int64_t>(use.steps.size()); }, Shown::kDetail},
};

struct Window {
  const DeviceUse* use;
  int64_t start, end;
};

std::vector<Window> WindowsOf(const DeviceUse& use) {
  const int64_t span = use.span();
  const int64_t count = std::min(kUsageWindows, std::max<int64_t>(span, 1));
  const auto at = [&](int64_t window) {
    return use.start() + span / count * window + span % count * window / count;
  };
  std::vector<Window> windows;
  for (int64_t i = 0; i < count; ++i) windows.push_back({&use, at(i), at(i + 1)});
  return windows;
}

int64_t In(const Window& window, const std::vector<Interval>& set) {
  return Length(Within(set, window.start, window.end));
}
Cell ShareOf(const Window& window, int64_t part) {
  return Percent(part, window.end - window.start);
}

const ColumnsOf<Window> kWindowColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const Window& window) { return RankCell(*window.use->trace); }},
    {"device", Unit::kCount, kDeviceMeaning,
     [](const Window& window) { return int64_t{window.use->device}; }},
    {"start_ns", Unit::kNs, "When the window begins, counted from the rank's first event.",
     [](const Window& window) { return window.start - window.use->trace->first_ns; }},
    {"end_ns", Unit::kNs, "When the window ends, counted from the rank's first event.",
     [](const Window& window) { return window.end - window.use->trace->first_ns; }},
    {"gpu_usage_ratio", Unit::kPercent, "The share of the window in which kernels run.",
     [](const Window& window) { return ShareOf(window, In(window, window.use->kernels)); }},
    {"busy_percent", Unit::kPercent,
     "The share of the window in which the device works, copies included.",
     [](const Window& window) { return ShareOf(window, In(window, window.use->work)); }},
    {"compute_percent", Unit::kPercent, "The share of the window in which the device computes.",
     [](const Window& window) { return ShareOf(window, In(window, window.use->compute)); }},
    {"comm_percent", Unit::kPercent, "The share of the window in which the device communicates.",
     [](const Window& window) { return ShareOf(window, In(window, window.use->comm)); }},
    {"exposed_comm_percent", Unit::kPercent,
     "The share of the window in which the device communicates and does not compute.",
     [](const Window& window) {
       return ShareOf(window, In(window, window.use->comm) - In(window, window.use->overlap));
     }},
    {"overlap_percent", Unit::kPercent,
     "The share of the window's communication with computation beside it; empty without "
     "communication.",
     [](const Window& window) {
       return Percent(In(window, window.use->overlap), In(window, window.use->comm));
     }},
};

}  // namespace

Table TabulateUsage(const Run& run, const ReportOptions&) {
  Table table =
      TableOf("How much of their time the devices run kernels", kUseColumns, FindUse(run));
  if (table.rows.empty()) table.notes.push_back(WhyNoWork(run, "no kernel ran on a device"));
  return table;
}

Table TabulateUsageOverTime(const Run& run, const ReportOptions&) {
  const std::vector<DeviceUse> uses = FindUse(run);
  std::vector<Window> windows;
  for (const DeviceUse& use : uses) {
    for (const Window& window : WindowsOf(use)) windows.push_back(window);
  }
  Table table = TableOf("What the devices do in each moment", kWindowColumns, windows);
  if (table.rows.empty()) table.notes.push_back(WhyNoWork(run, "no kernel ran on a device"));
  return table;
}

}  // namespace ranktap::collector
