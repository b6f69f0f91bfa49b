#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/description_columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

constexpr double kRuntimeCutoffNs = 50'000, kLaunchDelayCutoffNs = 100'000;  // HTA's

struct Launches {
  std::vector<double> cpu, gpu, delay;
  int64_t short_kernels = 0, slow_calls = 0, late = 0;
};

bool IsHtaLaunch(std::string_view api) {
  return api == "cudaLaunchKernel" || api == "cudaLaunchKernelExC" || api == "cudaMemcpyAsync" ||
         api == "cudaMemsetAsync";
}

Launches Collect(const Trace& trace, bool as_hta) {
  Launches launches;
  const size_t most = trace.kernels.size() + trace.copies.size() + trace.memsets.size();
  for (auto* const values : {&launches.cpu, &launches.gpu, &launches.delay}) values->reserve(most);
  std::vector<bool> counts(trace.dictionary.apis() + 1, !as_hta);
  for (uint32_t id = 0; as_hta && id < trace.dictionary.apis(); ++id) {
    counts[id] = IsHtaLaunch(trace.dictionary.Api(id).name);
  }
  const int64_t cutoff = as_hta ? HtaCutoff(trace) : INT64_MAX;
  const ApiCalls& calls = trace.api_calls;
  const auto add = [&](const DeviceWork& work) {
    for (size_t i = 0; i < work.size(); ++i) {
      const uint32_t launch = work.launch[i];
      if (launch == kNone || work.start[i] == kUntimed) continue;
      if (!counts[std::min<size_t>(calls.api[launch], counts.size() - 1)]) continue;
      if (calls.start[launch] >= cutoff) continue;
      const auto cpu = static_cast<double>(calls.end[launch] - calls.start[launch]);
      const auto gpu = static_cast<double>(work.end[i] - work.start[i]);
      const auto delay =
          static_cast<double>(std::max<int64_t>(0, work.start[i] - calls.end[launch]));
      launches.cpu.push_back(cpu);
      launches.gpu.push_back(gpu);
      launches.delay.push_back(delay);
      launches.short_kernels += gpu < cpu && cpu <= kRuntimeCutoffNs;
      launches.slow_calls += cpu > kRuntimeCutoffNs;
      launches.late += delay > kLaunchDelayCutoffNs;
    }
  };
  add(trace.kernels), add(trace.copies), add(trace.memsets);
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
    Launches launches = Collect(trace, options.hta_compat);
    notes.push_back(NoteOf(trace, launches));
    parts.push_back({&trace, "cpu_duration", Describe(std::move(launches.cpu))});
    parts.push_back({&trace, "gpu_duration", Describe(std::move(launches.gpu))});
    parts.push_back({&trace, "launch_delay", Describe(std::move(launches.delay))});
  }
  Table table = TableOf("Launches: the call, the wait, the work", kLaunchColumns, parts);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector
