#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/twice_told.h"
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

// Lengths of calls, of their work, and the times between them.
struct SomeLaunches {
  static constexpr size_t kMost = 2048;
  std::array<int64_t, kMost> cpu, gpu, delay;
  size_t count = 0;

  std::span<const int64_t> Of(const std::array<int64_t, kMost>& times) const {
    return {times.data(), count};
  }
};

// Calls visit(some launches) until all came.
template <typename Visit>
void ForEachLaunch(const Trace& trace, bool as_hta, Visit&& visit) {
  std::vector<bool> counts(trace.dictionary.apis() + 1, !as_hta);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaLaunch(trace.dictionary.Api(id).name);
  }
  const int64_t cutoff = as_hta ? HtaCutoff(trace) : INT64_MAX;
  const ApiCalls& calls = trace.api_calls;
  SomeLaunches some;
  const auto add = [&](const DeviceWork& work) {
    for (size_t i = 0; i < work.size(); ++i) {
      const uint32_t launch = work.launch[i];
      if (launch == kNone || work.start[i] == kUntimed) continue;
      const int64_t called = calls.start[launch], returned = calls.end[launch];
      if (as_hta &&
          (!counts[std::min<size_t>(calls.api[launch], counts.size() - 1)] || called >= cutoff)) {
        continue;
      }
      some.cpu[some.count] = returned - called;
      some.gpu[some.count] = work.end[i] - work.start[i];
      some.delay[some.count] = std::max<int64_t>(0, work.start[i] - returned);
      if (++some.count < SomeLaunches::kMost) continue;
      visit(some);
      some.count = 0;
    }
  };
  add(trace.kernels), add(trace.copies), add(trace.memsets);
  visit(some);
}

Launches CollectLaunches(const Trace& trace, bool as_hta) {
  const size_t most = trace.kernels.size() + trace.copies.size() + trace.memsets.size();
  TwiceTold cpu(most), gpu(most), delay(most);
  Launches launches;
  ForEachLaunch(trace, as_hta, [&](const SomeLaunches& some) {
    cpu.Add(some.Of(some.cpu)), gpu.Add(some.Of(some.gpu)), delay.Add(some.Of(some.delay));
    for (size_t i = 0; i < some.count; ++i) {
      launches.short_kernels += some.gpu[i] < some.cpu[i] && some.cpu[i] <= kRuntimeCutoffNs;
      launches.slow_calls += some.cpu[i] > kRuntimeCutoffNs;
      launches.late += some.delay[i] > kLaunchDelayCutoffNs;
    }
  });
  ForEachLaunch(trace, as_hta, [&](const SomeLaunches& some) {
    cpu.AddAgain(some.Of(some.cpu));
    gpu.AddAgain(some.Of(some.gpu));
    delay.AddAgain(some.Of(some.delay));
  });
  launches.cpu = cpu.Take();
  launches.gpu = gpu.Take();
  launches.delay = delay.Take();
  return launches;
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
