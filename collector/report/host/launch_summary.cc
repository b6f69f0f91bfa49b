#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/cells.h"
#include "collector/report/description_columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kRuntimeCutoffNs = 50'000, kLaunchDelayCutoffNs = 100'000;  // HTA's

struct Launches {
  Description cpu, gpu, delay;
  int64_t short_kernels = 0, slow_calls = 0, late = 0;
};

bool IsHtaLaunch(std::string_view api) {
  return api == "cudaLaunchKernel" || api == "cudaLaunchKernelExC" || api == "cudaMemcpyAsync" ||
         api == "cudaMemsetAsync";
}

class LaunchTimes {
 public:
  void Add(int64_t cpu, int64_t gpu, int64_t delay) {
    some_cpu_[some_] = cpu, some_gpu_[some_] = gpu, some_delay_[some_] = delay;
    if (++some_ == kSome) AddSome();
  }
  Launches Take() {
    AddSome();
    launches_.cpu = cpu_.Described();
    launches_.gpu = gpu_.Described();
    launches_.delay = delay_.Described();
    return launches_;
  }

 private:
  void AddSome() {
    const size_t count = std::exchange(some_, 0);
    const auto of = [count](const auto& times) { return std::span(times).first(count); };
    cpu_.Add(of(some_cpu_)), gpu_.Add(of(some_gpu_)), delay_.Add(of(some_delay_));
    for (size_t i = 0; i < count; ++i) {
      const int64_t cpu = some_cpu_[i];
      launches_.short_kernels += some_gpu_[i] < cpu && cpu <= kRuntimeCutoffNs;
      launches_.slow_calls += cpu > kRuntimeCutoffNs;
      launches_.late += some_delay_[i] > kLaunchDelayCutoffNs;
    }
  }

  // One by one, the sums of durations go through memory.
  static constexpr size_t kSome = 2048;
  std::array<int64_t, kSome> some_cpu_, some_gpu_, some_delay_;
  size_t some_ = 0;
  DurationDistribution cpu_, gpu_, delay_;
  Launches launches_;
};

Launches CollectLaunches(const Trace& trace, bool as_hta) {
  std::vector<bool> counts(trace.dictionary.apis() + 1, !as_hta);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaLaunch(trace.dictionary.Api(id).name);
  }
  const int64_t cutoff = as_hta ? HtaCutoff(trace) : INT64_MAX;
  const ApiCalls& calls = trace.api_calls;
  LaunchTimes times;
  const auto add = [&](const DeviceWork& work) {
    for (size_t i = 0; i < work.size(); ++i) {
      const uint32_t launch = work.launch[i];
      if (launch == kNone || work.start[i] == kUntimed) continue;
      const int64_t called = calls.start[launch], returned = calls.end[launch];
      if (as_hta &&
          (!counts[std::min<size_t>(calls.api[launch], counts.size() - 1)] || called >= cutoff)) {
        continue;
      }
      times.Add(returned - called, work.end[i] - work.start[i],
                std::max<int64_t>(0, work.start[i] - returned));
    }
  };
  add(trace.kernels), add(trace.copies), add(trace.memsets);
  return times.Take();
}

// The call, the wait or the work of a rank's launches.
struct Part {
  const Trace* trace;
  std::string what;
  Description time;
};

const ColumnsOf<Part> kLaunchColumns = JoinedColumns<Part>({
    {
        {"rank", Unit::kCount, kRankMeaning,
         [](const Part& part) { return RankCell(*part.trace); }},
        {"what", Unit::kText,
         "cpu_duration: the call; gpu_duration: the work; launch_delay: the time between them.",
         [](const Part& part) { return part.what; }},
        {"count", Unit::kCount, "The number of launches.",
         [](const Part& part) { return static_cast<int64_t>(part.time.count); }},
    },
    DescriptionColumns<Part, &Part::time, Unit::kNs>("_ns", "durations"),
});

std::string NoteOf(const Trace& trace, const Launches& launches) {
  return fmt::format(
      "{}: {} launches took longer than their work, {} calls over 50 us, {} began more than 100 us "
      "late",
      RankName(trace), launches.short_kernels, launches.slow_calls, launches.late);
}

}  // namespace

Table TabulateLaunches(const Run& run, const ReportOptions& options) {
  std::vector<Part> parts;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    const Launches launches = CollectLaunches(trace, options.hta_compat);
    notes.push_back(NoteOf(trace, launches));
    parts.push_back({&trace, "cpu_duration", launches.cpu});
    parts.push_back({&trace, "gpu_duration", launches.gpu});
    parts.push_back({&trace, "launch_delay", launches.delay});
  }
  Table table = TableOf("Launches: the call, the wait, the work", kLaunchColumns, parts);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector
