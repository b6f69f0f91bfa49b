#include "collector/report/memory/memory_tables.h"

#include <algorithm>
#include <array>
#include <map>

#include "collector/analysis/framework/memory_blocks.h"
#include "collector/analysis/steps.h"
#include "collector/report/cells.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kBackwardScope = 1;  // at::RecordScope::BACKWARD_FUNCTION

using Levels = std::array<int64_t, kMemoryCategories>;

int64_t& Of(Levels* levels, MemoryCategory category) {
  return (*levels)[static_cast<size_t>(category)];
}
int64_t Sum(const Levels& levels) {
  int64_t sum = 0;
  for (const int64_t level : levels) sum += level;
  return sum;
}

Cell DeviceCell(uint32_t device) {
  return device == kNone ? std::string("CPU") : "GPU " + std::to_string(device);
}

bool HeldAt(const HeldBlock& block, int64_t time) {
  return block.start <= time && (block.alive || block.end > time);
}

std::vector<int64_t> BackwardStarts(const Trace& trace) {
  std::vector<int64_t> starts;
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    if (trace.dictionary.String(trace.ranges.name[row]) == proto::kBackwardPhase) {
      starts.push_back(trace.ranges.start[row]);
    }
  }
  // The range begins with the first node of a module, later than that of the loss.
  for (uint32_t op = 0; op < trace.operators.size(); ++op) {
    if (trace.operators.scope.At(op) == kBackwardScope) starts.push_back(trace.operators.start[op]);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

// When the first backward after `since` began; kUntimed: there was none before `until`.
int64_t FirstBackward(const std::vector<int64_t>& starts, int64_t since, int64_t until) {
  const auto found = std::lower_bound(starts.begin(), starts.end(), since);
  return found == starts.end() || *found >= until ? kUntimed : *found;
}

struct StepMemory {
  int64_t at_start = 0, peak = 0, peak_time = 0, at_end = 0;
  int64_t unfreed = 0, new_unfreed = 0, saved = 0;
  int64_t changes = 0;
};

bool IsOfModel(MemoryCategory category) {
  return category == MemoryCategory::kParameter || category == MemoryCategory::kGradient ||
         category == MemoryCategory::kOptimizerState;
}

StepMemory MeasureStep(const Trace& trace, const DeviceMemory& memory, const Step& step,
                       int64_t backward) {
  StepMemory of;
  for (const HeldBlock& block : memory.blocks) {
    // What was there before a window is allocated at its start, which is the step's.
    if (HeldAt(block, step.start)) of.at_start += block.bytes;
    if (HeldAt(block, step.end)) {
      of.at_end += block.bytes;
      if (block.start > step.start && block.start <= step.end) {
        of.unfreed += block.bytes;
        if (!IsOfModel(block.category)) of.new_unfreed += block.bytes;
      }
    }
    if (backward != kUntimed && block.category == MemoryCategory::kActivation &&
        HeldAt(block, backward)) {
      of.saved += block.bytes;
    }
  }
  int64_t now = of.at_start;
  of.peak = now;
  of.peak_time = step.start;
  const Allocations& all = trace.allocations;
  const auto first = std::upper_bound(all.start.begin(), all.start.end(), step.start);
  for (auto i = static_cast<size_t>(first - all.start.begin());
       i < all.size() && all.start[i] <= step.end; ++i) {
    if (MemoryDeviceOf(all, i) != memory.device) continue;
    ++of.changes;
    now += all.bytes[i];
    if (now <= of.peak) continue;
    of.peak = now;
    of.peak_time = all.start[i];
  }
  return of;
}

// 100 * (reserved - given out) / reserved, at the row with most reserved.
Cell Fragmentation(const Trace& trace, uint32_t device, const Step& step) {
  const Allocations& all = trace.allocations;
  uint64_t most = 0, given = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.start[i] < step.start || all.start[i] > step.end) continue;
    if (MemoryDeviceOf(all, i) != device || all.reserved.At(i) < most) continue;
    most = all.reserved.At(i);
    given = all.allocated.At(i);
  }
  if (most == 0) return {};
  return 100.0 * static_cast<double>(most - std::min(most, given)) / static_cast<double>(most);
}

void NoteEmpty(Table* table) {
  if (!table->rows.empty()) return;
  table->notes.push_back(
      "no blocks of memory were recorded: ranktap run --level full records those of PyTorch in the "
      "steps of --schedule, torch.profiler with profile_memory=True");
}

}  // namespace

Table TabulateMemorySteps(const Run& run) {
  Table table{.name = "memory-steps",
              .title = "Memory that the framework held, by step",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kText},
                          {"step", Unit::kCount},
                          {"start_bytes", Unit::kBytes},
                          {"saved_bytes", Unit::kBytes},
                          {"peak_bytes", Unit::kBytes},
                          {"peak_at_ns", Unit::kNs, true},
                          {"end_bytes", Unit::kBytes},
                          {"unfreed_bytes", Unit::kBytes},
                          {"new_unfreed_bytes", Unit::kBytes},
                          {"fragmentation_percent", Unit::kPercent, true}}};
  for (const Trace& trace : run.traces) {
    const std::vector<int64_t> backwards = BackwardStarts(trace);
    for (const DeviceMemory& memory : HeldMemory(trace)) {
      for (const Step& step : DetectSteps(trace).list) {
        const StepMemory of =
            MeasureStep(trace, memory, step, FirstBackward(backwards, step.start, step.end));
        if (of.changes == 0) continue;  // not watched
        table.rows.push_back({RankCell(trace), DeviceCell(memory.device), step.number, of.at_start,
                              of.saved, of.peak, of.peak_time - trace.first_ns, of.at_end,
                              of.unfreed, of.new_unfreed,
                              Fragmentation(trace, memory.device, step)});
      }
    }
  }
  NoteEmpty(&table);
  return table;
}

Table TabulateMemoryModules(const Run& run) {
  Table table{.name = "memory-modules",
              .title = "What each module held at the peak",
              .columns = {{"rank", Unit::kCount, true},
                          {"device", Unit::kText, true},
                          {"module", Unit::kText, false, true},
                          {"bytes", Unit::kBytes},
                          {"share_percent", Unit::kPercent, true},
                          {"parameter_bytes", Unit::kBytes},
                          {"gradient_bytes", Unit::kBytes},
                          {"state_bytes", Unit::kBytes},
                          {"activation_bytes", Unit::kBytes},
                          {"other_bytes", Unit::kBytes, true},
                          {"saved_bytes", Unit::kBytes}}};
  for (const Trace& trace : run.traces) {
    const std::vector<int64_t> backwards = BackwardStarts(trace);
    for (const DeviceMemory& memory : HeldMemory(trace)) {
      // Of the last step that was watched: in a program's first there are no states.
      const int64_t last = memory.blocks.empty() ? 0 : memory.blocks.back().start;
      const StepList& steps = DetectSteps(trace);
      const int64_t step = StepIndexAt(steps, last);
      const int64_t backward =
          step < 0 ? kUntimed
                   : FirstBackward(backwards, steps.list[static_cast<size_t>(step)].start, last);
      std::map<std::string, std::pair<Levels, int64_t>> by_module;
      for (const HeldBlock& block : memory.blocks) {
        if (HeldAt(block, memory.peak_time)) {
          Of(&by_module[block.module].first, block.category) += block.bytes;
        }
        if (backward != kUntimed && block.category == MemoryCategory::kActivation &&
            HeldAt(block, backward)) {
          by_module[block.module].second += block.bytes;
        }
      }
      std::vector<std::pair<std::string, std::pair<Levels, int64_t>>> rows(by_module.begin(),
                                                                           by_module.end());
      std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        return Sum(a.second.first) > Sum(b.second.first);
      });
      for (auto& [module, held] : rows) {
        auto& [levels, saved] = held;
        const int64_t bytes = Sum(levels);
        const int64_t parameters = Of(&levels, MemoryCategory::kParameter),
                      gradients = Of(&levels, MemoryCategory::kGradient),
                      states = Of(&levels, MemoryCategory::kOptimizerState),
                      activations = Of(&levels, MemoryCategory::kActivation);
        table.rows.push_back({RankCell(trace), DeviceCell(memory.device),
                              module.empty() ? std::string("(in no module)") : module, bytes,
                              Percent(bytes, memory.peak), parameters, gradients, states,
                              activations, bytes - parameters - gradients - states - activations,
                              saved});
      }
    }
  }
  NoteEmpty(&table);
  return table;
}

namespace {

void AddLevels(const Trace& trace, uint32_t device, int64_t time, const Levels& levels,
               Table* table) {
  std::vector<Cell> row = {RankCell(trace), DeviceCell(device), time - trace.first_ns, Sum(levels)};
  for (const int64_t level : levels) row.emplace_back(level);
  table->rows.push_back(std::move(row));
}

void Apply(const Allocations& all, size_t row, Levels* levels) {
  const uint8_t told = all.category.At(row);
  Of(levels, told == 0 ? MemoryCategory::kUnknown : static_cast<MemoryCategory>(told - 1)) +=
      all.bytes[row];
}

// The end of every `rate`th operator, in the order of their ends.
std::vector<int64_t> SampledEnds(const Operators& ops, size_t rate) {
  std::vector<int64_t> ends, sampled;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool counts = static_cast<OperatorKind>(ops.kind[i]) == OperatorKind::kOperator;
    if (counts && ops.end[i] != kUntimed) ends.push_back(ops.end[i]);
  }
  std::sort(ends.begin(), ends.end());
  for (size_t i = rate; i <= ends.size(); i += rate) sampled.push_back(ends[i - 1]);
  return sampled;
}

void AddAfterOperators(const Trace& trace, size_t rate, Table* table) {
  const Allocations& all = trace.allocations;
  std::map<uint32_t, Levels> devices;
  size_t next = 0;
  for (const int64_t end : SampledEnds(trace.operators, rate)) {
    for (; next < all.size() && all.start[next] <= end; ++next) {
      Apply(all, next, &devices[MemoryDeviceOf(all, next)]);
    }
    for (const auto& [device, levels] : devices) AddLevels(trace, device, end, levels, table);
  }
}

}  // namespace

Table TabulateMemoryOverTime(const Run& run, const AnalysisOptions& options) {
  Table table{.name = "memory-over-time",
              .title = "Memory over time, by category",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kText},
                          {"time_ns", Unit::kNs},
                          {"bytes", Unit::kBytes}}};
  for (size_t category = 0; category < kMemoryCategories; ++category) {
    std::string name = CategoryName(static_cast<MemoryCategory>(category));
    std::replace(name.begin(), name.end(), ' ', '_');
    table.columns.push_back({name + "_bytes", Unit::kBytes, true});
  }
  for (const Trace& trace : run.traces) {
    const Allocations& all = trace.allocations;
    if (options.sample_rate > 0) {
      AddAfterOperators(trace, static_cast<size_t>(options.sample_rate), &table);
      continue;
    }
    struct Curve {
      Levels levels{}, best{};
      int64_t part = -1, best_time = 0;
    };
    std::map<uint32_t, Curve> curves;
    if (all.size() == 0) continue;
    const int64_t first = all.start[0], span = all.start[all.size() - 1] - first + 1;
    const auto emit = [&](uint32_t device, const Curve& curve) {
      if (curve.part >= 0) AddLevels(trace, device, curve.best_time, curve.best, &table);
    };
    for (size_t i = 0; i < all.size(); ++i) {
      Curve& curve = curves[MemoryDeviceOf(all, i)];
      Apply(all, i, &curve.levels);
      const auto part = static_cast<int64_t>(static_cast<double>(all.start[i] - first) /
                                             static_cast<double>(span) * kMemorySamples);
      if (part == curve.part && Sum(curve.levels) <= Sum(curve.best)) continue;
      if (part != curve.part) emit(MemoryDeviceOf(all, i), curve);
      curve.part = part;
      curve.best = curve.levels;
      curve.best_time = all.start[i];
    }
    for (const auto& [device, curve] : curves) emit(device, curve);
  }
  NoteEmpty(&table);
  return table;
}

}  // namespace ranktap::collector
