#include "collector/trace/framework/memory_categories.h"

#include <algorithm>
#include <string_view>

#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Which spans are open on a thread, asked in the order of time.
class OpenSpans {
 public:
  OpenSpans(const TimeColumn& start, const TimeColumn& end, const Column<uint16_t>& writer,
            std::vector<uint32_t> rows, size_t writers)
      : start_(start), end_(end), writer_(writer), rows_(std::move(rows)), open_(writers) {}

  // Outermost first. kAnyWriter: of the thread on which something began last.
  const std::vector<uint32_t>& At(int64_t time, uint16_t writer) {
    for (; next_ < rows_.size() && start_[rows_[next_]] <= time; ++next_) {
      const uint32_t row = rows_[next_];
      if (writer_[row] >= open_.size()) continue;
      Close(start_[row], &open_[writer_[row]]);
      open_[writer_[row]].push_back(row);
    }
    if (writer != kAnyWriter) return Of(time, writer);
    const std::vector<uint32_t>* latest = &none_;
    for (size_t i = 0; i < open_.size(); ++i) {
      const std::vector<uint32_t>& of = Of(time, static_cast<uint16_t>(i));
      if (!of.empty() && (latest->empty() || start_[of.back()] > start_[latest->back()])) {
        latest = &of;
      }
    }
    return *latest;
  }

 private:
  const std::vector<uint32_t>& Of(int64_t time, uint16_t writer) {
    if (writer >= open_.size()) return none_;
    Close(time, &open_[writer]);
    return open_[writer];
  }
  void Close(int64_t time, std::vector<uint32_t>* open) const {
    while (!open->empty() && end_[open->back()] < time) open->pop_back();
  }

  const TimeColumn& start_;
  const TimeColumn& end_;
  const Column<uint16_t>& writer_;
  std::vector<uint32_t> rows_;  // by start, of equal starts the outer first
  std::vector<std::vector<uint32_t>> open_;
  std::vector<uint32_t> none_;
  size_t next_ = 0;
};

struct Span {
  int64_t start = 0, end = 0;
};

// By start; they do not overlap.
bool Covers(const std::vector<Span>& spans, int64_t time) {
  const auto after = std::upper_bound(spans.begin(), spans.end(), time,
                                      [](int64_t t, const Span& span) { return t < span.start; });
  return after != spans.begin() && std::prev(after)->end >= time;
}

class Categories {
 public:
  explicit Categories(const Trace& trace)
      : trace_(trace),
        modules_(trace.ranges.start, trace.ranges.end, trace.ranges.writer,
                 RangesIn(trace, kModuleDomain), trace.writers.size()),
        operators_(trace.operators.start, trace.operators.end, trace.operators.writer, Operators(),
                   trace.writers.size()) {
    const Ranges& ranges = trace.ranges;
    for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
      const std::string_view name = trace.dictionary.String(ranges.name[row]);
      std::vector<Span>* const phase = name == proto::kBackwardPhase    ? &backward_
                                       : name == proto::kOptimizerPhase ? &optimizer_
                                       : name == proto::kDataPhase      ? &data_
                                                                        : nullptr;
      if (phase != nullptr) phase->push_back({ranges.start[row], ranges.end[row]});
    }
    for (const uint32_t row : RangesIn(trace, kStepDomain)) {
      steps_.push_back({ranges.start[row], ranges.end[row]});
      last_step_ended_ = ranges.unfinished.At(row) == 0;
    }
    for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
      if (ranges.depth[row] == 0) forwards_.push_back(ranges.start[row]);
    }
  }

  MemoryCategory Of(MemoryBlock* block) {
    const std::vector<uint32_t>& modules = modules_.At(block->start, block->writer);
    const std::vector<uint32_t>& operators = operators_.At(block->start, block->writer);
    switch (block->told) {
      case proto::kParameterKind:
      case proto::kBufferKind:
        return MemoryCategory::kParameter;
      case proto::kGradientKind:
        return MemoryCategory::kGradient;
      case proto::kStateKind:
        return MemoryCategory::kOptimizerState;
      default:
        break;
    }
    if (block->preexisting) return MemoryCategory::kUnknown;
    if (!modules.empty()) block->owner = trace_.ranges.name[modules.back()];
    const bool within_operator =
        !operators.empty() && block->end <= trace_.operators.end[operators.front()];
    if (within_operator || Covers(optimizer_, block->start)) return MemoryCategory::kTemporary;
    if (!modules.empty()) return MemoryCategory::kActivation;
    // The range begins with the first node of a module, later than that of the loss.
    const bool in_node =
        !operators.empty() && trace_.operators.scope.At(operators.front()) == kBackwardScope;
    if (in_node || Covers(backward_, block->start)) return MemoryCategory::kAutogradDetail;
    if (!Covers(data_, block->start) && !BeforeForward(block->start)) {
      return MemoryCategory::kActivation;
    }
    return OutlivesNextStep(*block) ? MemoryCategory::kUnknown : MemoryCategory::kInput;
  }

 private:
  std::vector<uint32_t> Operators() const {
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < trace_.operators.size(); ++row) {
      if (trace_.operators.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator)) {
        rows.push_back(row);
      }
    }
    return rows;
  }

  bool BeforeForward(int64_t time) const {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), time,
                                        [](int64_t t, const Span& step) { return t < step.start; });
    const int64_t since = after == steps_.begin() ? kUntimed : std::prev(after)->start;
    const auto forward = std::lower_bound(forwards_.begin(), forwards_.end(), since);
    return forward == forwards_.end() || *forward > time;
  }

  bool OutlivesNextStep(const MemoryBlock& block) const {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), block.start,
                                        [](int64_t t, const Span& step) { return t < step.start; });
    const auto own = after - steps_.begin() - 1;
    const auto next = static_cast<size_t>(own) + 1;
    const bool ended = next + 1 < steps_.size() || (next < steps_.size() && last_step_ended_);
    return own > 0 && ended && block.end > steps_[next].end;
  }

  const Trace& trace_;
  OpenSpans modules_, operators_;
  std::vector<Span> backward_, optimizer_, data_, steps_;
  bool last_step_ended_ = false;
  std::vector<int64_t> forwards_;
};

}  // namespace

std::vector<MemoryCategory> Categorize(const Trace& trace, std::vector<MemoryBlock>* blocks) {
  Categories categories(trace);
  std::vector<MemoryCategory> of;
  of.reserve(blocks->size());
  for (MemoryBlock& block : *blocks) of.push_back(categories.Of(&block));
  return of;
}

}  // namespace ranktap::collector
