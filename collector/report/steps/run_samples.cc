#include "collector/report/steps/run_samples.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/range_instances.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/steps.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/steps/moved_lines.h"
#include "collector/report/steps/step_parts.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Rows of ranges of one domain without the ranges of it that lie within them, on their thread.
std::vector<int64_t> OwnTimes(const Ranges& ranges, const std::vector<uint32_t>& rows) {
  std::vector<int64_t> own(rows.size());
  std::map<uint16_t, std::vector<size_t>> open;  // by thread, the innermost last
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t start = ranges.start[rows[i]], end = ranges.end[rows[i]];
    own[i] = end - start;
    std::vector<size_t>& around = open[ranges.writer[rows[i]]];
    while (!around.empty() && ranges.end[rows[around.back()]] <= start) around.pop_back();
    if (!around.empty()) own[around.back()] -= end - start;
    around.push_back(i);
  }
  return own;
}

class Sampler {
 public:
  Sampler(const Run& run, bool tells_waiting) : tells_waiting_(tells_waiting) {
    const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
    const std::vector<std::vector<PartOfStep>> parts = PartsOfSteps(run);
    for (size_t t = 0; t < run.traces.size(); ++t) {
      AddTrace(run.traces[t], waterfalls[t], parts[t]);
    }
    for (auto& [key, samples] : result_.by_key) samples.ns.resize(result_.steps_of(key.first));
  }
  RunSamples Take() { return std::move(result_); }

 private:
  // The times of each step of a trace, for one kind.
  using StepColumns = std::vector<size_t>;

  // The columns are the steps that `recorded` holds, those after the warm-up; where it holds no
  // such, all of it.
  void Begin(SampleKind kind, const std::vector<bool>& recorded) {
    size_t& count = result_.steps[static_cast<size_t>(kind)];
    kind_ = kind;
    if (whole_) {
      ++count;
      return;
    }
    const std::vector<Step>& steps = steps_->list;
    bool any = false;
    for (size_t i = 0; i < steps.size(); ++i) any |= recorded[i] && !steps[i].warm_up;
    columns_.assign(steps.size(), SIZE_MAX);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (recorded[i] && !(any && steps[i].warm_up)) columns_[i] = count++;
    }
  }
  size_t ColumnOf(int64_t step) const {
    if (whole_) return result_.steps_of(kind_) - 1;
    return step < 0 ? SIZE_MAX : columns_[static_cast<size_t>(step)];
  }

  void AddTrace(const Trace& trace, const RankWaterfall& waterfall,
                const std::vector<PartOfStep>& parts) {
    steps_ = &DetectSteps(trace);
    whole_ = steps_->list.empty();
    result_.has_steps &= !whole_;
    all_.assign(steps_->list.size(), true);
    Begin(SampleKind::kStep, all_);
    if (whole_ && !waterfall.steps.list.empty()) {
      Add("step", 0, waterfall.steps.list[0].length());
    } else if (whole_) {
      Add("step", 0, trace.last_ns - trace.first_ns);
    }
    for (size_t i = 0; i < steps_->list.size(); ++i) {
      Add("step", static_cast<int64_t>(i), StepsOnDevice(trace).list[i].length());
    }
    AddParts(parts);
    AddPhases(trace, waterfall);
    AddModules(trace);
    AddKernels(trace);
    AddLines(trace);
    AddRanges(trace);
    AddOperators(trace);
  }
  void AddParts(const std::vector<PartOfStep>& parts) {
    for (const SampleKind kind : {SampleKind::kCause, SampleKind::kHost}) {
      Begin(kind, all_);
      for (const PartOfStep& of : parts) {
        const auto& [cause, place] = of.part;
        const bool is_placed = cause == Cause::kHost && !place.empty();
        if (is_placed != (kind == SampleKind::kHost)) continue;
        Add(is_placed ? place : SaidName(cause, tells_waiting_), static_cast<int64_t>(of.step),
            of.ns);
      }
    }
  }
  // Without a device these are causes.
  void AddPhases(const Trace& trace, const RankWaterfall& waterfall) {
    Begin(SampleKind::kPhase, all_);
    if (waterfall.on_host) return;
    for (const uint32_t row : PhasesOfSteps(trace)) {
      const int64_t start = trace.ranges.start[row];
      Add(trace.dictionary.String(trace.ranges.name[row]), StepIndexAt(*steps_, start),
          trace.ranges.end[row] - start);
    }
  }
  void AddModules(const Trace& trace) {
    const std::vector<uint32_t> rows = RangesIn(trace, kModuleDomain);
    std::vector<int64_t> starts;
    for (const uint32_t row : rows) starts.push_back(trace.ranges.start[row]);
    Begin(SampleKind::kModule, RecordedSteps(trace, starts));
    const std::vector<int64_t> own = OwnTimes(trace.ranges, rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      Add(trace.dictionary.String(trace.ranges.name[rows[i]]), StepIndexAt(*steps_, starts[i]),
          own[i]);
    }
  }
  void AddKernels(const Trace& trace) {
    Begin(SampleKind::kKernel, all_);
    StepFinder finder(trace, *steps_);
    std::map<std::pair<uint32_t, DeviceSpan::Table>, std::string> names;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      const int64_t step = finder.IndexOf(span);
      if (span.table != DeviceSpan::Table::kKernel) {
        Add(NameOf(trace, span), step, span.end - span.start);
        continue;
      }
      std::string& name = names[{span.name, span.table}];
      if (name.empty()) name = NameOf(trace, span);
      Add(name, step, span.end - span.start);
    }
  }
  void AddLines(const Trace& trace) {
    const HostSamples& samples = SamplesOf(trace);
    if (samples.empty()) return;
    Begin(SampleKind::kLine, all_);
    const auto add = [&](int64_t step, int64_t start, int64_t end) {
      samples.ForEachOfMain(start, end, [&](const HostSample& sample, int64_t ns) {
        const uint32_t own = samples.LineOf(sample.frame).line;
        if (own != 0) Add(samples.Describe({.line = own}), step, ns);
      });
    };
    if (whole_) return add(0, trace.first_ns, trace.last_ns);
    for (size_t i = 0; i < steps_->list.size(); ++i) {
      add(static_cast<int64_t>(i), steps_->list[i].start, steps_->list[i].end);
    }
  }
  void AddRanges(const Trace& trace) {
    Begin(SampleKind::kRange, all_);
    for (const RangeInstance& range : RangeInstances(trace)) {
      if (DomainName(trace, range.domain).starts_with("ranktap.")) continue;
      Add(trace.dictionary.String(range.name), StepIndexAt(*steps_, range.start), range.self_ns());
    }
  }
  void AddOperators(const Trace& trace) {
    const Operators& ops = trace.operators;
    Begin(SampleKind::kOperator,
          RecordedSteps(trace, std::vector(ops.start.begin(), ops.start.end())));
    const auto is_operator = [&ops](size_t row) {
      return ops.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator);
    };
    const std::vector<int64_t> own = OwnTimes(ops, is_operator);
    StepFinder finder(trace, *steps_);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!is_operator(i)) continue;
      Add(trace.dictionary.String(ops.name[i]), finder.IndexAt(ops.start[i]), own[i]);
    }
  }

  void Add(std::string_view name, int64_t step, int64_t ns) {
    const size_t column = ColumnOf(step);
    if (column == SIZE_MAX) return;
    Samples& samples = result_.by_key[{kind_, std::string(name)}];
    if (samples.ns.size() <= column) samples.ns.resize(column + 1);
    samples.ns[column] += static_cast<double>(ns);
    ++samples.calls;
  }

  RunSamples result_;
  const bool tells_waiting_;
  const StepList* steps_ = nullptr;  // of the trace that is being added
  bool whole_ = false;
  std::vector<bool> all_;
  SampleKind kind_{};
  StepColumns columns_;  // of kind_
};

struct Numbered {
  std::string pattern;  // "batch N"
  int64_t number = 0;
};

// The last number of a name; none where it has none, or one of a module's path or a type.
std::optional<Numbered> NumberIn(const std::string& name) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto last = std::find_if(name.rbegin(), name.rend(), is_digit).base();
  if (last == name.begin()) return std::nullopt;
  auto first = last;
  while (first != name.begin() && is_digit(*std::prev(first))) --first;
  Numbered numbered{.pattern = {name.begin(), first}};
  numbered.pattern += 'N';
  numbered.pattern.append(last, name.end());
  const char* const text = name.data() + (first - name.begin());
  std::from_chars(text, text + (last - first), numbered.number);
  return numbered;
}

// No two of them in one step.
bool ExcludeEachOther(const RunSamples& run, const std::vector<SampleKey>& names) {
  std::vector<bool> taken(run.steps_of(SampleKind::kRange));
  for (const SampleKey& name : names) {
    const auto found = run.by_key.find(name);
    if (found == run.by_key.end()) continue;
    for (size_t i = 0; i < found->second.ns.size(); ++i) {
      if (found->second.ns[i] <= 0) continue;
      if (taken[i]) return false;
      taken[i] = true;
    }
  }
  return true;
}

void Join(const std::vector<SampleKey>& names, RunSamples* run) {
  const std::string pattern = NumberIn(names[0].second)->pattern;
  Samples joined;
  for (const SampleKey& name : names) {
    const auto found = run->by_key.find(name);
    if (found == run->by_key.end()) continue;
    const Samples& samples = found->second;
    joined.ns.resize(std::max(joined.ns.size(), samples.ns.size()));
    for (size_t i = 0; i < samples.ns.size(); ++i) joined.ns[i] += samples.ns[i];
    joined.calls += samples.calls;
    joined.ids.push_back(NumberIn(name.second)->number);
    run->by_key.erase(found);
  }
  if (joined.ids.empty()) return;
  std::ranges::sort(joined.ids);
  run->by_key[{SampleKind::kRange, pattern}] = std::move(joined);
}

TimeByLine TimesOfLines(const RunSamples& run) {
  TimeByLine lines;
  for (const auto& [key, samples] : run.by_key) {
    if (key.first != SampleKind::kLine) continue;
    lines[key.second] = std::accumulate(samples.ns.begin(), samples.ns.end(), 0.0) /
                        static_cast<double>(std::max<size_t>(run.steps_of(SampleKind::kLine), 1));
  }
  return lines;
}

}  // namespace

const char* NameOf(SampleKind kind) {
  static constexpr std::array<const char*, kSampleKinds> kNames = {
      "step", "cause", "host", "phase", "kernel", "line", "module", "range", "operator"};
  return kNames[static_cast<size_t>(kind)];
}

RunSamples SampleRun(const Run& run, bool tells_waiting) {
  return Sampler(run, tells_waiting).Take();
}

void JoinNumberedRanges(RunSamples* a, RunSamples* b) {
  std::map<std::string, std::set<SampleKey>> by_pattern;
  for (const RunSamples* const run : {a, b}) {
    for (const auto& [key, samples] : run->by_key) {
      if (key.first != SampleKind::kRange) continue;
      if (const std::optional<Numbered> numbered = NumberIn(key.second)) {
        by_pattern[numbered->pattern].insert(key);
      }
    }
  }
  for (const auto& [pattern, keys] : by_pattern) {
    const std::vector<SampleKey> names(keys.begin(), keys.end());
    if (names.size() < 2 || !ExcludeEachOther(*a, names) || !ExcludeEachOther(*b, names)) continue;
    Join(names, a);
    Join(names, b);
  }
}

void JoinMovedLines(RunSamples* a, RunSamples* b) {
  std::map<SampleKey, Samples> moved;
  for (const auto& [name, there] : FindMovedLines(TimesOfLines(*a), TimesOfLines(*b))) {
    auto taken = a->by_key.extract({SampleKind::kLine, name});
    moved[{SampleKind::kLine, there}] = std::move(taken.mapped());
  }
  a->by_key.merge(moved);
}

}  // namespace ranktap::collector
