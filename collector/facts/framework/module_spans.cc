#include "collector/facts/framework/module_spans.h"

#include <unordered_map>

#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

std::vector<ModuleSpan> OfRanges(const Trace& trace) {
  const Ranges& ranges = trace.ranges;
  std::vector<ModuleSpan> spans;
  for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
    spans.push_back({ranges.start[row], ranges.end[row], ranges.name[row], ranges.writer[row],
                     ranges.depth[row]});
  }
  return spans;
}

std::vector<ModuleSpan> OfPythonCalls(const Trace& trace) {
  const PythonCalls& calls = trace.python_calls;
  std::vector<ModuleSpan> spans;
  std::unordered_map<uint16_t, std::vector<int64_t>> open;  // ends, by writer
  for (size_t row = 0; row < calls.module_path.size(); ++row) {
    if (calls.module_path[row] == 0) continue;
    std::vector<int64_t>& ends = open[calls.writer[row]];
    while (!ends.empty() && ends.back() <= calls.start[row]) ends.pop_back();
    spans.push_back({calls.start[row], calls.end[row], calls.module_path[row], calls.writer[row],
                     static_cast<uint16_t>(ends.size())});
    ends.push_back(calls.end[row]);
  }
  return spans;
}

struct Kept {
  std::vector<ModuleSpan> spans;
};

}  // namespace

const std::vector<ModuleSpan>& ModuleSpans(const Trace& trace) {
  return trace.memo
      .Get<Kept>([&trace] {
        std::vector<ModuleSpan> spans = OfRanges(trace);
        return Kept{spans.empty() ? OfPythonCalls(trace) : std::move(spans)};
      })
      .spans;
}

}  // namespace ranktap::collector
