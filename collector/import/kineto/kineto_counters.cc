#include "collector/import/kineto/kineto_counters.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "collector/file/json.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// CUPTI has some 5,000 metrics of a device; nobody measures as many at once.
constexpr size_t kMostMetrics = 256;

struct Row {
  int64_t start = 0, end = 0;
  uint32_t name = 0;
  std::vector<CounterReading> readings;
};

}  // namespace

bool AddKernelCounters(const KinetoEvent& event, KinetoNames* names, Trace* trace) {
  const Json args = ParseJson(event.all_args);
  std::vector<CounterReading> readings;
  if (args.is_object()) {
    for (const auto& [metric, value] : args.items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) continue;
      if (readings.size() == kMostMetrics) break;
      readings.push_back({names->Intern(metric), value.get<double>()});
    }
  }
  if (readings.empty()) return false;
  KernelCounters& counters = trace->kernel_counters;
  counters.start.push_back(event.ts_ns);
  counters.end.push_back(event.ts_ns + (event.has_dur ? event.dur_ns : 0));
  counters.name.push_back(names->Intern(event.name));
  counters.readings.push_back(std::move(readings));
  return true;
}

void SortKernelCounters(Trace* trace) {
  KernelCounters& counters = trace->kernel_counters;
  std::vector<Row> rows(counters.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = {counters.start[i], counters.end[i], counters.name[i],
               std::move(counters.readings[i])};
  }
  SortRows(&rows, [](const Row& a, const Row& b) { return a.start < b.start; });
  for (size_t i = 0; i < rows.size(); ++i) {
    counters.start.Set(i, rows[i].start);
    counters.end.Set(i, rows[i].end);
    counters.name[i] = rows[i].name;
    counters.readings[i] = std::move(rows[i].readings);
  }
}

}  // namespace ranktap::collector
