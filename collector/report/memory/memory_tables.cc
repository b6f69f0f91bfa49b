#include "collector/report/memory/memory_tables.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collector/facts/framework/memory_blocks.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/trace/device_label.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

using Levels = std::array<int64_t, kMemoryCategories>;

int64_t& Of(Levels* levels, MemoryCategory category) {
  return (*levels)[static_cast<size_t>(category)];
}
int64_t Of(const Levels& levels, MemoryCategory category) {
  return levels[static_cast<size_t>(category)];
}
int64_t Sum(const Levels& levels) {
  int64_t sum = 0;
  for (const int64_t level : levels) sum += level;
  return sum;
}

Cell HoldingDevice(const Trace& trace, uint32_t device) {
  return device == kNone ? std::string("CPU") : DeviceLabel(trace, device);
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
  const Trace* trace = nullptr;
  const Step* step = nullptr;
  uint32_t device = kNone;
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
  StepMemory of{.trace = &trace, .step = &step, .device = memory.device};
  for (const HeldBlock& block : memory.blocks) {
    // Memory that was there before a window is allocated at its start, which is the step's.
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
Cell Fragmentation(const StepMemory& of) {
  const Allocations& all = of.trace->allocations;
  uint64_t most = 0, given = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.start[i] < of.step->start || all.start[i] > of.step->end) continue;
    if (MemoryDeviceOf(all, i) != of.device || all.reserved.At(i) < most) continue;
    most = all.reserved.At(i);
    given = all.allocated.At(i);
  }
  if (most == 0) return {};
  return 100.0 * static_cast<double>(most - std::min(most, given)) / static_cast<double>(most);
}

void NoteEmpty(const Run& run, Table* table) {
  if (!table->rows.empty()) return;
  table->notes.push_back("no blocks of memory were recorded: " + WhoRecordsMemory(run));
}

const ColumnsOf<StepMemory> kStepColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const StepMemory& row) { return RankCell(*row.trace); }},
    {"device", Unit::kText, kDeviceMeaning,
     [](const StepMemory& row) { return HoldingDevice(*row.trace, row.device); }},
    {"step", Unit::kCount, "The number of the step.",
     [](const StepMemory& row) { return row.step->number; }},
    {"start_bytes", Unit::kBytes, "The bytes that the program held when the step began.",
     [](const StepMemory& row) { return row.at_start; }},
    {"saved_bytes", Unit::kBytes, "The activations that it held when the backward began.",
     [](const StepMemory& row) { return row.saved; }},
    {"peak_bytes", Unit::kBytes, "The most that the program held in the step.",
     [](const StepMemory& row) { return row.peak; }},
    {"peak_at_ns", Unit::kNs, "When it held the most, counted from the rank's first event.",
     [](const StepMemory& row) { return row.peak_time - row.trace->first_ns; }, Shown::kDetail},
    {"end_bytes", Unit::kBytes, "The bytes that the program held when the step ended.",
     [](const StepMemory& row) { return row.at_end; }},
    {"unfreed_bytes", Unit::kBytes, "The bytes allocated in the step and still held at its end.",
     [](const StepMemory& row) { return row.unfreed; }},
    {"new_unfreed_bytes", Unit::kBytes,
     "The unfreed bytes that are neither parameters, gradients nor optimizer state.",
     [](const StepMemory& row) { return row.new_unfreed; }},
    {"fragmentation_percent", Unit::kPercent,
     "The share of the reserved memory that nobody held, when most was reserved.",
     [](const StepMemory& row) { return Fragmentation(row); }, Shown::kDetail},
};

struct ModuleMemory {
  const Trace* trace = nullptr;
  uint32_t device = kNone;
  int64_t device_peak = 0;
  std::string module;
  Levels levels{};  // at the device's peak
  int64_t saved = 0;

  int64_t bytes() const { return Sum(levels); }
  int64_t of(MemoryCategory category) const { return Of(levels, category); }
  int64_t other() const {
    return bytes() - of(MemoryCategory::kParameter) - of(MemoryCategory::kGradient) -
           of(MemoryCategory::kOptimizerState) - of(MemoryCategory::kActivation);
  }
  std::string name() const { return module.empty() ? "(in no module)" : module; }
};

const ColumnsOf<ModuleMemory> kModuleColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const ModuleMemory& row) { return RankCell(*row.trace); }, Shown::kDetail},
    {"device", Unit::kText, kDeviceMeaning,
     [](const ModuleMemory& row) { return HoldingDevice(*row.trace, row.device); }, Shown::kDetail},
    {"module", Unit::kText, "The module, or the name of what belongs to no module.",
     [](const ModuleMemory& row) { return row.name(); }, Shown::kProse},
    {"bytes", Unit::kBytes, "The bytes that it held at the device's peak.",
     [](const ModuleMemory& row) { return row.bytes(); }},
    {"share_percent", Unit::kPercent, "The share of the peak.",
     [](const ModuleMemory& row) { return Percent(row.bytes(), row.device_peak); }, Shown::kDetail},
    {"parameter_bytes", Unit::kBytes, "The bytes of its parameters.",
     [](const ModuleMemory& row) { return row.of(MemoryCategory::kParameter); }},
    {"gradient_bytes", Unit::kBytes, "The bytes of its gradients.",
     [](const ModuleMemory& row) { return row.of(MemoryCategory::kGradient); }},
    {"state_bytes", Unit::kBytes, "The bytes of its optimizer state.",
     [](const ModuleMemory& row) { return row.of(MemoryCategory::kOptimizerState); }},
    {"activation_bytes", Unit::kBytes, "The bytes of its activations.",
     [](const ModuleMemory& row) { return row.of(MemoryCategory::kActivation); }},
    {"other_bytes", Unit::kBytes, "The bytes of everything else that it held.",
     [](const ModuleMemory& row) { return row.other(); }, Shown::kDetail},
    {"saved_bytes", Unit::kBytes, "The activations that it held when the backward began.",
     [](const ModuleMemory& row) { return row.saved; }},
};

// The first backward of the last step that was watched: in a program's first there are no states.
int64_t LastBackward(const Trace& trace, const DeviceMemory& memory,
                     const std::vector<int64_t>& backwards) {
  const int64_t last = memory.blocks.empty() ? 0 : memory.blocks.back().start;
  const StepList& steps = DetectSteps(trace);
  const int64_t step = StepIndexAt(steps, last);
  if (step < 0) return kUntimed;
  return FirstBackward(backwards, steps.list[static_cast<size_t>(step)].start, last);
}

void AddModules(const Trace& trace, const DeviceMemory& memory, int64_t backward,
                std::vector<ModuleMemory>* rows) {
  std::map<std::string, ModuleMemory> by_module;
  for (const HeldBlock& block : memory.blocks) {
    if (HeldAt(block, memory.peak_time)) {
      Of(&by_module[block.module].levels, block.category) += block.bytes;
    }
    if (backward != kUntimed && block.category == MemoryCategory::kActivation &&
        HeldAt(block, backward)) {
      by_module[block.module].saved += block.bytes;
    }
  }
  const auto first = static_cast<std::ptrdiff_t>(rows->size());
  for (auto& [module, of] : by_module) {
    rows->push_back({&trace, memory.device, memory.peak, module, of.levels, of.saved});
  }
  std::stable_sort(
      rows->begin() + first, rows->end(),
      [](const ModuleMemory& a, const ModuleMemory& b) { return a.bytes() > b.bytes(); });
}

}  // namespace

Table TabulateMemorySteps(const Run& run, const ReportOptions&) {
  std::vector<StepMemory> rows;
  for (const Trace& trace : run.traces) {
    const std::vector<int64_t> backwards = BackwardStarts(trace);
    for (const DeviceMemory& memory : HeldMemory(trace)) {
      for (const Step& step : DetectSteps(trace).list) {
        const StepMemory of =
            MeasureStep(trace, memory, step, FirstBackward(backwards, step.start, step.end));
        if (of.changes > 0) rows.push_back(of);  // 0: not watched
      }
    }
  }
  Table table = TableOf("Memory that the framework held, by step", kStepColumns, rows);
  NoteStepsWithAllocations(run, &table);
  NoteEmpty(run, &table);
  return table;
}

Table TabulateMemoryModules(const Run& run, const ReportOptions&) {
  std::vector<ModuleMemory> rows;
  for (const Trace& trace : run.traces) {
    const std::vector<int64_t> backwards = BackwardStarts(trace);
    for (const DeviceMemory& memory : HeldMemory(trace)) {
      AddModules(trace, memory, LastBackward(trace, memory, backwards), &rows);
    }
  }
  Table table = TableOf("What each module held at the peak", kModuleColumns, rows);
  NoteStepsWithAllocations(run, &table);
  NoteEmpty(run, &table);
  return table;
}

namespace {

// The memory that a device held at a moment.
struct MemorySample {
  const Trace* trace;
  uint32_t device;
  int64_t time;
  Levels levels;
};

const ColumnsOf<MemorySample> kSampleColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const MemorySample& row) { return RankCell(*row.trace); }},
    {"device", Unit::kText, kDeviceMeaning,
     [](const MemorySample& row) { return HoldingDevice(*row.trace, row.device); }},
    {"time_ns", Unit::kNs, "The moment, counted from the rank's first event.",
     [](const MemorySample& row) { return row.time - row.trace->first_ns; }},
    {"bytes", Unit::kBytes, "The bytes that the program held at this moment.",
     [](const MemorySample& row) { return Sum(row.levels); }},
};

// A column for each category: no ColumnOf, whose cells cannot depend on a number.
void AddCategories(const std::vector<MemorySample>& samples, Table* table) {
  for (size_t category = 0; category < kMemoryCategories; ++category) {
    std::string name = CategoryName(static_cast<MemoryCategory>(category));
    std::replace(name.begin(), name.end(), ' ', '_');
    table->columns.push_back({name + "_bytes",
                              Unit::kBytes,
                              Shown::kDetail,
                              {},
                              "The bytes of this category: " +
                                  CategoryName(static_cast<MemoryCategory>(category)) + "."});
    for (size_t i = 0; i < samples.size(); ++i) {
      table->rows[i].emplace_back(samples[i].levels[category]);
    }
  }
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

void AddAfterOperators(const Trace& trace, size_t rate, std::vector<MemorySample>* samples) {
  const Allocations& all = trace.allocations;
  std::map<uint32_t, Levels> devices;
  size_t next = 0;
  for (const int64_t end : SampledEnds(trace.operators, rate)) {
    for (; next < all.size() && all.start[next] <= end; ++next) {
      Apply(all, next, &devices[MemoryDeviceOf(all, next)]);
    }
    for (const auto& [device, levels] : devices) samples->push_back({&trace, device, end, levels});
  }
}

// Takes for each part of the time and each device the moment at which most was held.
void AddHighest(const Trace& trace, std::vector<MemorySample>* samples) {
  struct Curve {
    Levels levels{}, best{};
    int64_t part = -1, best_time = 0;
  };
  const Allocations& all = trace.allocations;
  if (all.size() == 0) return;
  std::map<uint32_t, Curve> curves;
  const int64_t first = all.start[0], span = all.start[all.size() - 1] - first + 1;
  const auto emit = [&](uint32_t device, const Curve& curve) {
    if (curve.part >= 0) samples->push_back({&trace, device, curve.best_time, curve.best});
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

}  // namespace

Table TabulateMemoryOverTime(const Run& run, const ReportOptions& options) {
  std::vector<MemorySample> samples;
  for (const Trace& trace : run.traces) {
    if (options.sample_rate > 0) {
      AddAfterOperators(trace, static_cast<size_t>(options.sample_rate), &samples);
    } else {
      AddHighest(trace, &samples);
    }
  }
  Table table = TableOf("Memory over time, by category", kSampleColumns, samples);
  AddCategories(samples, &table);
  NoteStepsWithAllocations(run, &table);
  NoteEmpty(run, &table);
  return table;
}

}  // namespace ranktap::collector
