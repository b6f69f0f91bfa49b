#include "collector/facts/roofline/model_point.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/model_tree.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/roofline/roofline.h"

namespace ranktap::collector {
namespace {

std::string_view RootOf(std::string_view module) { return module.substr(0, module.find('.')); }

struct Sums {
  int64_t flops = 0, bytes = 0, outputs = 0;
  std::set<int64_t> forwards;  // by the start of the root's
};

// Starts of the roots' forwards.
std::vector<int64_t> RootForwards(const Trace& trace) {
  std::vector<int64_t> starts;
  for (const ModuleSpan& span : ModuleSpans(trace)) {
    if (span.depth == 0) starts.push_back(span.start);
  }
  std::ranges::sort(starts);
  return starts;
}

std::map<std::string_view, Sums> SumsByRoot(const Trace& trace) {
  const std::vector<int64_t> forwards = RootForwards(trace);
  std::map<std::string_view, Sums> sums;
  for (const RooflinePoint& point : MeasureRoofline(trace).points) {
    if (point.phase != RooflinePhase::kForward || point.module == 0 || point.op == kNone) continue;
    Sums& of = sums[RootOf(trace.dictionary.String(point.module))];
    AddCapped(point.flops, &of.flops);
    AddCapped(point.bytes.total(), &of.bytes);
    const bool in_place = trace.dictionary.String(point.name).ends_with('_');
    if (!in_place) AddCapped(point.bytes.written, &of.outputs);
    const auto after = std::ranges::upper_bound(forwards, trace.operators.start[point.op]);
    if (after != forwards.begin()) of.forwards.insert(*std::prev(after));
  }
  return sums;
}

}  // namespace

std::optional<ModelPoint> FindModelPoint(const Trace& trace) {
  const std::map<std::string_view, Sums> sums = SumsByRoot(trace);
  const auto most =
      std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second.flops; });
  if (most == sums.end() || most->second.flops == 0) return std::nullopt;
  ModelPoint point{.root = std::string(most->first)};
  for (const ModelModule& module : DescribeModelWithChildren(trace)) {
    if (module.name == point.root) point.parameter_bytes = Sum(module.parameters).bytes;
  }
  const Sums& of = most->second;
  if (point.parameter_bytes == 0 || of.bytes == 0) return std::nullopt;
  const auto times = static_cast<int64_t>(std::max<size_t>(1, of.forwards.size()));
  point.flops = of.flops / times;
  point.multiply_adds = point.flops / 2;
  point.bytes = of.bytes / times;
  point.output_bytes = of.outputs / times;
  return point;
}

}  // namespace ranktap::collector
