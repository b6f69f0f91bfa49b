#include "collector/report/device/hta_kernels.h"

#include <map>
#include <tuple>
#include <utility>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/device/kernel_summary.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

using Durations = std::map<std::pair<WorkKind, std::string>, std::vector<double>>;

Durations ByName(const Trace& trace) {
  // Names are made once for each text, not once for each kernel.
  std::map<std::tuple<DeviceSpan::Table, WorkKind, uint32_t>, std::vector<double>*> kernels;
  Durations durations;
  for (const DeviceSpan& span : HtaDeviceTimeline(trace)) {
    if (span.kind == WorkKind::kOther) continue;
    std::vector<double>* one = nullptr;
    std::vector<double>*& known =
        span.name == 0 ? one : kernels[{span.table, span.kind, span.name}];
    if (known == nullptr) known = &durations[{span.kind, NameOf(trace, span)}];
    known->push_back(static_cast<double>(span.end - span.start));
  }
  return durations;
}

}  // namespace

Table TabulateHtaKernels(const Run& run) {
  Table table{.name = "kernels",
              .title = "GPU kernels and memory operations by rank and type, as HTA",
              .columns = {{"rank", Unit::kCount},
                          {"type", Unit::kText},
                          {"name", Unit::kText},
                          {"calls", Unit::kCount},
                          {"total_ns", Unit::kNs},
                          {"max_ns", Unit::kNs, Shown::kDetail},
                          {"min_ns", Unit::kNs, Shown::kDetail},
                          {"std_ns", Unit::kNs, Shown::kDetail},
                          {"mean_ns", Unit::kNs}}};
  for (const Trace& trace : run.traces) {
    for (auto& [key, durations] : ByName(trace)) {
      double total = 0;
      for (const double ns : durations) total += ns;
      const Description of = Describe(std::move(durations));
      table.rows.push_back({RankCell(trace), std::string(NameOf(key.first)), key.second,
                            static_cast<int64_t>(of.count), static_cast<int64_t>(total),
                            static_cast<int64_t>(of.max), static_cast<int64_t>(of.min),
                            static_cast<int64_t>(of.deviation + 0.5),
                            static_cast<int64_t>(of.mean + 0.5)});
    }
  }
  return table;
}

}  // namespace ranktap::collector
