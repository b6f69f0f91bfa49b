#include "collector/report/device/hta_kernels.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
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

struct HtaKernelsLine {
  const Trace* trace;
  WorkKind kind;
  std::string name;
  double total_ns;
  Description ns;
};

int64_t Rounded(double value) { return std::llround(value); }

const ColumnsOf<HtaKernelsLine> kHtaKernelsColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const HtaKernelsLine& line) { return RankCell(*line.trace); }},
    {"type", Unit::kText, "The kind of work: computation, communication or memory.",
     [](const HtaKernelsLine& line) { return std::string(NameOf(line.kind)); }},
    {"name", Unit::kText, "The kernel, copy or memset.",
     [](const HtaKernelsLine& line) { return line.name; }},
    {"calls", Unit::kCount, "How often the rank's devices ran it.",
     [](const HtaKernelsLine& line) { return static_cast<int64_t>(line.ns.count); }},
    {"total_ns", Unit::kNs, "The durations, added up.",
     [](const HtaKernelsLine& line) { return static_cast<int64_t>(line.total_ns); }},
    {"max_ns", Unit::kNs, "The longest duration.",
     [](const HtaKernelsLine& line) { return static_cast<int64_t>(line.ns.max); }, Shown::kDetail},
    {"min_ns", Unit::kNs, "The shortest duration.",
     [](const HtaKernelsLine& line) { return static_cast<int64_t>(line.ns.min); }, Shown::kDetail},
    {"std_ns", Unit::kNs, "The sample standard deviation of the durations.",
     [](const HtaKernelsLine& line) { return Rounded(line.ns.deviation); }, Shown::kDetail},
    {"mean_ns", Unit::kNs, "The mean duration.",
     [](const HtaKernelsLine& line) { return Rounded(line.ns.mean); }},
};

}  // namespace

Table TabulateHtaKernels(const Run& run) {
  std::vector<HtaKernelsLine> lines;
  for (const Trace& trace : run.traces) {
    for (auto& [key, durations] : ByName(trace)) {
      double total = 0;
      for (const double ns : durations) total += ns;
      lines.push_back({&trace, key.first, key.second, total, Describe(std::move(durations))});
    }
  }
  return TableOf("GPU kernels and memory operations by rank and type, as HTA", kHtaKernelsColumns,
                 lines);
}

}  // namespace ranktap::collector
