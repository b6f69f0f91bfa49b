#include "collector/report/host/hta_annotations.h"

#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

struct Line {
  const Trace* trace;
  std::string name;
  int64_t total_ns;
  Description ns;
};

int64_t Rounded(double value) { return std::llround(value); }

const ColumnsOf<Line> kHtaAnnotationsColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const Line& line) { return RankCell(*line.trace); }},
    {"name", Unit::kText, "The annotation.", [](const Line& line) { return line.name; }},
    {"calls", Unit::kCount, "How often it is on the rank's devices.",
     [](const Line& line) { return static_cast<int64_t>(line.ns.count); }},
    {"total_ns", Unit::kNs, "The durations, added up.",
     [](const Line& line) { return line.total_ns; }},
    {"max_ns", Unit::kNs, "The longest duration.",
     [](const Line& line) { return Rounded(line.ns.max); }, Shown::kDetail},
    {"min_ns", Unit::kNs, "The shortest duration.",
     [](const Line& line) { return Rounded(line.ns.min); }, Shown::kDetail},
    {"std_ns", Unit::kNs, "The sample standard deviation of the durations.",
     [](const Line& line) { return Rounded(line.ns.deviation); }, Shown::kDetail},
    {"mean_ns", Unit::kNs, "The mean duration.",
     [](const Line& line) { return Rounded(line.ns.mean); }},
};

void AddTrace(const Trace& trace, std::vector<Line>* lines) {
  const DeviceAnnotations& all = trace.device_annotations;
  const int64_t cutoff = HtaCutoff(trace);
  std::map<std::string_view, std::vector<double>> by_name;
  for (size_t i = 0; i < all.size() && all.start[i] < cutoff; ++i) {
    by_name[trace.dictionary.String(all.name[i])].push_back(
        static_cast<double>(all.end[i] - all.start[i]));
  }
  for (auto& [name, durations] : by_name) {
    double total = 0;
    for (const double ns : durations) total += ns;
    lines->push_back({&trace, std::string(name), Rounded(total), Describe(std::move(durations))});
  }
}

}  // namespace

Table TabulateHtaAnnotations(const Run& run) {
  std::vector<Line> lines;
  for (const Trace& trace : run.traces) AddTrace(trace, &lines);
  SortRows(&lines, [](const Line& a, const Line& b) { return a.total_ns > b.total_ns; });
  Table table =
      TableOf("User annotations on the GPU by rank, as HTA", kHtaAnnotationsColumns, lines);
  if (lines.empty()) table.notes.push_back("the trace has no annotation on a device");
  return table;
}

}  // namespace ranktap::collector
