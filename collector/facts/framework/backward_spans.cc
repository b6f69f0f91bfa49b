#include "collector/facts/framework/backward_spans.h"

#include <algorithm>
#include <map>

#include "collector/facts/framework/op_modules.h"

namespace ranktap::collector {

std::vector<BackwardSpan> BackwardSpans(const Trace& trace) {
  const Operators& ops = trace.operators;
  const std::vector<OpPlace> places = PlaceOperators(trace);
  const auto is_backward = [&](uint32_t op) {
    return op != kNone && places[op].pass == Pass::kBackward && places[op].module != 0 &&
           !places[op].of_collective;
  };
  std::vector<BackwardSpan> spans;
  std::map<uint16_t, BackwardSpan> open;  // by writer
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const bool is_outermost = !is_backward(op < ops.parent.size() ? ops.parent[op] : kNone);
    if (!is_backward(op) || !is_outermost) continue;
    const auto [at, is_first] = open.try_emplace(ops.writer[op]);
    BackwardSpan& span = at->second;
    if (is_first || span.module != places[op].module) {
      if (!is_first) spans.push_back(span);
      span = {ops.start[op], ops.end[op], places[op].module, ops.writer[op]};
    }
    span.end = std::max(span.end, ops.end[op]);
  }
  for (const auto& [writer, span] : open) spans.push_back(span);
  std::ranges::stable_sort(spans, {}, &BackwardSpan::start);
  return spans;
}

}  // namespace ranktap::collector
