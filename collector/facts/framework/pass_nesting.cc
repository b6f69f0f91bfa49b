#include "collector/facts/framework/pass_nesting.h"

#include <algorithm>

#include "collector/facts/framework/module_spans.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_(trace), spans_(ModuleSpans(trace)) {
    for (uint32_t row = 0; row < spans_.size(); ++row)
      by_writer_[spans_[row].writer].push_back(row);
  }

  PassNesting Find() {
    FindInOptimizers();
    const Ranges& ranges = trace_.ranges;
    for (const uint32_t row : RangesIn(trace_, kPhaseDomain)) {
      const bool is_optimizer = IsPhase(row, proto::kOptimizerPhase);
      if (!is_optimizer && !IsPhase(row, proto::kBackwardPhase)) continue;
      AddToForward(ranges.writer[row], ranges.start[row], ranges.end[row], is_optimizer);
    }
    const std::vector<uint32_t> steps = RangesIn(trace_, kStepDomain);
    for (size_t i = 1; i < steps.size(); ++i) {
      AddToForward(ranges.writer[steps[i]], ranges.end[steps[i - 1]], ranges.start[steps[i]],
                   false);
    }
    for (auto& [writer, set] : found_.in_forwards) set = Merged(std::move(set));
    return std::move(found_);
  }

 private:
  bool IsPhase(uint32_t row, std::string_view phase) const {
    return trace_.dictionary.String(trace_.ranges.name[row]) == phase;
  }

  void FindInOptimizers() {
    const Ranges& ranges = trace_.ranges;
    std::vector<Interval> optimizers, passes;
    for (const uint32_t row : RangesIn(trace_, kPhaseDomain)) {
      if (IsPhase(row, proto::kOptimizerPhase)) {
        optimizers.emplace_back(ranges.start[row], ranges.end[row]);
      } else if (IsPhase(row, proto::kBackwardPhase)) {
        passes.emplace_back(ranges.start[row], ranges.end[row]);
      }
    }
    optimizers = Merged(std::move(optimizers));
    for (const ModuleSpan& span : spans_) {
      if (span.depth == 0) passes.emplace_back(span.start, span.end);
    }
    for (const Interval& pass : passes) {
      const auto after = std::upper_bound(optimizers.begin(), optimizers.end(), pass.first,
                                          [](int64_t t, const Interval& a) { return t < a.first; });
      if (after != optimizers.begin() && pass.second <= std::prev(after)->second) {
        found_.in_optimizers.push_back(pass);
      }
    }
    found_.in_optimizers = Merged(std::move(found_.in_optimizers));
  }

  // Gives [start, end) to the writer's forward that is around it, if one is.
  void AddToForward(uint16_t writer, int64_t start, int64_t end, bool is_optimizer) {
    const auto of_writer = by_writer_.find(writer);
    if (of_writer == by_writer_.end() || start >= end) return;
    const std::vector<uint32_t>& rows = of_writer->second;
    auto at = std::upper_bound(rows.begin(), rows.end(), start,
                               [this](int64_t t, uint32_t span) { return t < spans_[span].start; });
    const auto begun = at;
    while (at != rows.begin() && spans_[*--at].depth != 0) continue;
    if (at == begun || spans_[*at].depth != 0 || spans_[*at].end < end) return;
    found_.in_forwards[writer].emplace_back(start, end);
    for (; is_optimizer && at != begun; ++at) {
      if (spans_[*at].end >= end) found_.by_hand.insert(spans_[*at].name);
    }
  }

  const Trace& trace_;
  const std::vector<ModuleSpan>& spans_;
  std::unordered_map<uint16_t, std::vector<uint32_t>> by_writer_;
  PassNesting found_;
};

}  // namespace

std::vector<Interval> PassNesting::InForward(uint16_t writer, int64_t start, int64_t end) const {
  const auto found = in_forwards.find(writer);
  return found == in_forwards.end() ? std::vector<Interval>() : Within(found->second, start, end);
}

std::vector<Interval> PassNesting::InModule(uint32_t name, uint16_t writer, int64_t start,
                                            int64_t end) const {
  return by_hand.contains(name) ? InForward(writer, start, end) : std::vector<Interval>();
}

const PassNesting& NestedPasses(const Trace& trace) {
  return trace.memo.Get<PassNesting>([&trace] { return Finder(trace).Find(); });
}

}  // namespace ranktap::collector
