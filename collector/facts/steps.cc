#include "collector/facts/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "collector/facts/backlog.h"
#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/kernel_period.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/step_names.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr double kWarmUpFactor = 1.5;
constexpr size_t kLeastSteps = 3;
constexpr size_t kMostWarmUp = 3;
constexpr std::string_view kOptimizerSteps = "optimizer steps";
constexpr double kStub = 0.05;        // of the median step
constexpr double kLeastCover = 0.05;  // of the recorded time

double MedianLength(const std::vector<Step>& steps) {
  std::vector<double> lengths;
  for (const Step& step : steps) lengths.push_back(static_cast<double>(step.length()));
  return Median(std::move(lengths));
}

// Drops what overlaps the one before.
void Disjoin(std::vector<Step>* steps) {
  std::sort(steps->begin(), steps->end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<Step> kept;
  for (const Step& step : *steps) {
    if (step.end > step.start && (kept.empty() || step.start >= kept.back().end)) {
      kept.push_back(step);
    }
  }
  *steps = std::move(kept);
}

// How many of the first steps take over 1.5 medians of all.
size_t LongAtFirst(const std::vector<Step>& steps) {
  const double limit = kWarmUpFactor * MedianLength(steps);
  const auto usual = std::ranges::find_if(
      steps, [limit](const Step& step) { return static_cast<double>(step.length()) <= limit; });
  return static_cast<size_t>(usual - steps.begin());
}

// More than three are steps of another kind, an epoch say, with a warm-up of their own.
void MarkWarmUp(std::vector<Step>* steps) {
  if (steps->size() < kLeastSteps) return;
  size_t count = LongAtFirst(*steps);
  if (count > kMostWarmUp) {
    const auto end = steps->begin() + static_cast<ptrdiff_t>(count);
    count = std::min(LongAtFirst({steps->begin(), end}), kMostWarmUp);
  }
  count = std::min(count, steps->size() - 1);  // at least one step counts
  for (size_t i = 0; i < count; ++i) (*steps)[i].warm_up = true;
}

// Whether a step launched work for a device; of a trace without any in steps, whether it ran
// operators. Only steps at the ends are asked about, so that work is looked at from both ends on,
// and no further than the answer.
class StepsWithWork {
 public:
  StepsWithWork(const Trace& trace, const StepList& steps)
      : spans_(DeviceTimeline(trace)),
        first_(trace, steps),
        last_(trace, steps),
        end_(spans_.size()),
        did_(steps.list.size()) {
    while (!any_ && LookAtFirst()) continue;
    if (any_) return;
    StepFinder finder(trace, steps);
    for (size_t i = 0; i < trace.operators.size(); ++i) {
      if (trace.operators.kind[i] != static_cast<uint8_t>(OperatorKind::kOperator)) continue;
      Mark(finder.IndexAt(trace.operators.start[i]));
    }
  }
  bool any() const { return any_; }
  bool AtEnd(size_t step) {
    while (!did_[step] && LookAtLast()) continue;
    return did_[step];
  }
  bool AtBeginning(size_t step) {
    while (!did_[step] && LookAtFirst()) continue;
    return did_[step];
  }

 private:
  // False: all work was looked at.
  bool LookAtFirst() {
    if (begin_ == end_) return false;
    Mark(first_.IndexByTime(spans_[begin_++]));
    return true;
  }
  bool LookAtLast() {
    if (begin_ == end_) return false;
    Mark(last_.IndexByTime(spans_[--end_]));
    return true;
  }
  void Mark(int64_t step) {
    if (step < 0) return;
    did_[static_cast<size_t>(step)] = true;
    any_ = true;
  }

  const DeviceSpans& spans_;
  StepFinder first_, last_;
  size_t begin_ = 0, end_;  // of the spans that were not looked at
  std::vector<bool> did_;
  bool any_ = false;
};

void DropStubs(const Trace& trace, StepList* steps) {
  if (steps->list.size() < 2) return;
  StepsWithWork work(trace, *steps);
  const double least = steps->list.size() < kLeastSteps ? 0 : kStub * MedianLength(steps->list);
  const auto is_short = [&](size_t i) {
    return static_cast<double>(steps->list[i].length()) < least;
  };
  size_t first = 0, end = steps->list.size();
  while (end > 1 && (is_short(end - 1) || (work.any() && !work.AtEnd(end - 1)))) --end;
  while (first + 1 < end && (is_short(first) || (work.any() && !work.AtBeginning(first)))) ++first;
  steps->list.erase(steps->list.begin() + static_cast<ptrdiff_t>(end), steps->list.end());
  steps->list.erase(steps->list.begin(), steps->list.begin() + static_cast<ptrdiff_t>(first));
}

// Optimizer to optimizer, as our own hook in PyTorch saw them.
bool FromFramework(const Trace& trace, StepList* steps) {
  const Ranges& ranges = trace.ranges;
  for (const uint32_t row : RangesIn(trace, kStepDomain)) {
    if (ranges.unfinished.At(row) != 0) continue;
    steps->list.push_back(
        {static_cast<int64_t>(ranges.payload.At(row)), ranges.start[row], ranges.end[row], false});
  }
  steps->source = kOptimizerSteps;
  return !steps->list.empty();
}

bool FromAnnotations(const Trace& trace, StepList* steps) {
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    if (!name.starts_with("ProfilerStep#")) continue;
    steps->list.push_back({NumberIn(name, static_cast<int64_t>(steps->list.size())), ops.start[i],
                           ops.end[i], false});
  }
  steps->source = "ProfilerStep";
  return !steps->list.empty();
}

bool FromRanges(const Trace& trace, StepList* steps) {
  const Ranges& ranges = trace.ranges;
  struct Candidate {
    std::vector<uint32_t> rows;
    int64_t total = 0;
    bool named = false;
    uint32_t depth = UINT32_MAX;
  };
  std::map<std::pair<std::string, uint16_t>, Candidate> candidates;  // by name and writer
  std::unordered_map<uint64_t, Candidate*> known;                    // by name's id and writer
  uint64_t last = 0;                                                 // of `known`
  Candidate* candidate = nullptr;
  bool of_hooks = false;
  for (uint32_t i = 0; i < ranges.size(); ++i) {
    // The agent's hooks wrote these about the framework: garbage collection is not a step.
    if (i == 0 || ranges.domain[i] != ranges.domain[i - 1]) {
      of_hooks = trace.dictionary.Domain(ranges.domain[i]).starts_with("ranktap.");
    }
    if (of_hooks || ranges.unfinished.At(i) != 0) continue;
    const uint64_t id = uint64_t{ranges.name[i]} << 16 | ranges.writer[i];
    if (candidate == nullptr || id != last) {
      Candidate*& at = known[id];
      if (at == nullptr) {
        const std::string_view full = trace.dictionary.String(ranges.name[i]);
        const std::string like = StepLikeName(full);
        at = &candidates[{like.empty() ? std::string(full) : like, ranges.writer[i]}];
        at->named = !like.empty();
      }
      candidate = at;
      last = id;
    }
    candidate->depth = std::min<uint32_t>(candidate->depth, ranges.depth[i]);
    candidate->rows.push_back(i);
    candidate->total += ranges.end[i] - ranges.start[i];
  }
  const int64_t span = trace.last_ns - trace.first_ns;
  const Candidate* best = nullptr;
  std::string best_name;
  for (const auto& [key, of] : candidates) {
    const bool covers = of.total * 2 > span && of.depth == 0;
    if (of.rows.size() < kLeastSteps || (!of.named && !covers)) continue;
    if (best != nullptr && std::tuple(best->named, best->total) >= std::tuple(of.named, of.total)) {
      continue;
    }
    best = &of;
    best_name = key.first;
  }
  if (best == nullptr) return false;
  for (const uint32_t row : best->rows) {
    const auto number = static_cast<int64_t>(steps->list.size());
    steps->list.push_back({NumberIn(trace.dictionary.String(ranges.name[row]), number),
                           ranges.start[row], ranges.end[row], false});
  }
  steps->source = "NVTX " + best_name;
  return true;
}

// torch.profiler's annotation of an optimizer's step: from one's end to the next one's. Without a
// backward pass between them two optimizers make one step.
bool FromOptimizers(const Trace& trace, StepList* steps) {
  if (trace.origin == TraceOrigin::kExecution) return false;  // its times are made up
  const Operators& ops = trace.operators;
  bool has_backward = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    has_backward |= name.starts_with("autograd::engine::evaluate_function");
    if (!name.starts_with("Optimizer.step#")) continue;
    const auto number = static_cast<int64_t>(steps->list.size());
    if (number > 0 && !has_backward) {
      steps->list.back().end = std::max(steps->list.back().end, ops.end[i]);
    } else {
      const int64_t start = number == 0 ? ops.start[0] : steps->list.back().end;
      steps->list.push_back({number, start, ops.end[i], false});
    }
    has_backward = false;
  }
  steps->source = "Optimizer.step";
  return !steps->list.empty();
}

bool HasGap(const Trace& trace, int64_t start, int64_t end) {
  return std::any_of(trace.gaps.begin(), trace.gaps.end(),
                     [&](const Gap& gap) { return gap.start < end && start < gap.end; });
}

// What repeats in a small part of the trace alone is no step of the program: a layer, two kernels.
bool CoversEnough(const Trace& trace, int64_t start, int64_t end, int64_t last) {
  int64_t recorded = last - trace.first_ns;
  for (const Gap& gap : trace.gaps) {
    if (gap.source != "full") recorded -= std::min(gap.end, last) - std::min(gap.start, last);
  }
  return static_cast<double>(end - start) >= kLeastCover * static_cast<double>(recorded);
}

// Before the program's own end: PyTorch's takes a second, and a few tokens of a small model less.
int64_t LastWork(const Trace& trace) {
  int64_t last = trace.first_ns;
  for (const auto* ends : {&trace.api_calls.end, &trace.kernels.end, &trace.operators.end}) {
    for (const int64_t end : *ends) last = std::max(last, end);
  }
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    if (trace.ranges.unfinished.At(i) == 0) last = std::max<int64_t>(last, trace.ranges.end[i]);
  }
  return last;
}

// A program that only infers: from one forward to the next of the root that takes most of the time.
bool FromForwards(const Trace& trace, StepList* steps) {
  const Ranges& ranges = trace.ranges;
  struct Root {
    std::vector<uint32_t> rows;
    int64_t total = 0;
  };
  std::map<std::pair<uint32_t, uint16_t>, Root> roots;  // by name and writer
  const Root* longest = nullptr;
  for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
    if (ranges.depth[row] != 0 || ranges.unfinished.At(row) != 0) continue;
    Root& root = roots[{ranges.name[row], ranges.writer[row]}];
    root.rows.push_back(row);
    root.total += ranges.end[row] - ranges.start[row];
    if (longest == nullptr || root.total > longest->total) longest = &root;
  }
  if (longest == nullptr) return false;
  const std::vector<uint32_t>& rows = longest->rows;
  const int64_t first = ranges.start[rows.front()], end_of_all = ranges.end[rows.back()];
  if (!CoversEnough(trace, first, end_of_all, LastWork(trace))) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t end = ranges.end[rows[i]];
    if (i + 1 < rows.size() && !HasGap(trace, end, ranges.start[rows[i + 1]])) {
      end = ranges.start[rows[i + 1]];
    }
    steps->list.push_back({static_cast<int64_t>(i), ranges.start[rows[i]], end, false});
  }
  steps->is_call = std::ranges::none_of(RangesIn(trace, kPhaseDomain), [&](uint32_t row) {
    return trace.dictionary.String(ranges.name[row]) == proto::kBackwardPhase;
  });
  steps->source = fmt::format("forwards of {}", trace.dictionary.String(ranges.name[rows.front()]));
  return true;
}

// Whether one call of an operator, or of a module's forward, holds two of these moments: what
// repeats inside is a layer.
bool IsInsideOfAForward(const Trace& trace, const std::vector<int64_t>& begins) {
  const auto holds_two = [&begins](int64_t start, int64_t end) {
    const auto first = std::ranges::lower_bound(begins, start);
    return first != begins.end() && std::next(first) != begins.end() && *std::next(first) < end;
  };
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!holds_two(ops.start[i], ops.end[i])) continue;
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    if (name.find("::") != name.npos || name.find("Compiled") != name.npos) return true;
  }
  const PythonCalls& calls = trace.python_calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!holds_two(calls.start[i], calls.end[i])) continue;
    const std::string_view name = trace.dictionary.String(calls.name[i]);
    if (name.ends_with("): forward") || name.starts_with("nn.Module: ")) return true;
  }
  return false;
}

bool FromPeriod(const Trace& trace, StepList* steps) {
  const KernelPeriod period = FindKernelPeriod(trace);
  if (period.kernels == 0) return false;
  std::vector<int64_t> launched, started;
  for (const uint32_t row : period.first_kernels) {
    const uint32_t launch = trace.kernels.launch[row];
    if (launch != kNone) launched.push_back(trace.api_calls.start[launch]);
    started.push_back(trace.kernels.start[row]);
  }
  steps->on_device = launched.size() != started.size() ||
                     !std::is_sorted(launched.begin(), launched.end(), std::less_equal<int64_t>());
  const std::vector<int64_t>& begins = steps->on_device ? started : launched;
  const auto [first, last] = std::minmax_element(begins.begin(), begins.end());
  if (!CoversEnough(trace, *first, *last, trace.last_ns)) return false;
  if (!steps->on_device && IsInsideOfAForward(trace, begins)) return false;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    steps->list.push_back({static_cast<int64_t>(i), begins[i], begins[i + 1], false});
  }
  steps->is_period = true;
  steps->source = fmt::format("period of {} kernels", period.kernels);
  return true;
}

StepList Detect(const Trace& trace) {
  StepList steps;
  bool from_hooks = FromFramework(trace, &steps);
  if (!from_hooks && !FromAnnotations(trace, &steps) && !FromRanges(trace, &steps)) {
    const bool trains = FromOptimizers(trace, &steps);
    from_hooks = !trains && FromForwards(trace, &steps);
    if (!trains && !from_hooks && !FromPeriod(trace, &steps)) return {};
  }
  Disjoin(&steps.list);
  if (from_hooks && steps.source == kOptimizerSteps) LeaveOutEvaluations(trace, &steps);
  // Outside windows of capture what our hooks saw is a step without any work that was recorded.
  if (!from_hooks) DropStubs(trace, &steps);
  MarkWarmUp(&steps.list);
  return steps;
}

}  // namespace

const StepList& DetectSteps(const Trace& trace) {
  return trace.memo.Get<StepList>([&trace] { return Detect(trace); });
}

std::vector<int64_t> StartsOfPeriods(const Trace& trace) {
  std::vector<int64_t> starts;
  for (const uint32_t row : FindKernelPeriod(trace).first_kernels) {
    starts.push_back(trace.kernels.start[row]);
  }
  return starts;
}

int64_t StepIndexAt(const StepList& steps, int64_t time) {
  const auto after = std::upper_bound(steps.list.begin(), steps.list.end(), time,
                                      [](int64_t at, const Step& s) { return at < s.start; });
  if (after == steps.list.begin() || time >= std::prev(after)->end) return -1;
  return std::prev(after) - steps.list.begin();
}

int64_t StepFinder::IndexOfAnother(int64_t time) {
  const auto holds = [&](size_t i) {
    return i < steps_.list.size() && steps_.list[i].start <= time && time < steps_.list[i].end;
  };
  const auto next = static_cast<size_t>(last_ + 1);
  const int64_t index = holds(next) ? last_ + 1 : StepIndexAt(steps_, time);
  if (index < 0) return index;
  last_ = index;
  start_ = steps_.list[static_cast<size_t>(index)].start;
  end_ = steps_.list[static_cast<size_t>(index)].end;
  return index;
}

bool StepFinder::IsBacklog(const DeviceSpan& span) {
  if (steps_.on_device) return false;
  if (backlog_ == nullptr) backlog_ = &BacklogOf(trace_);
  return backlog_->Holds(span);
}

}  // namespace ranktap::collector
