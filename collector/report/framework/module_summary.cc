#include "collector/report/framework/module_summary.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>

#include "collector/facts/causes/late_module.h"
#include "collector/facts/causes/stragglers.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/pass_nesting.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/launched_work.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/columns.h"
#include "collector/report/framework/custom_flops.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// An operator inside of a module's forward counts for the innermost module only.
class SelfTimes {
 public:
  explicit SelfTimes(const std::vector<ModuleSpan>& spans) : spans_(spans) {}

  // Rows come by start. Returns the row of the module around this one; kNone: a root.
  uint32_t Enter(uint32_t row) {
    std::vector<uint32_t>& open = open_[spans_[row].writer];
    while (!open.empty() && spans_[open.back()].end <= spans_[row].start) open.pop_back();
    while (open.size() > spans_[row].depth) open.pop_back();
    const uint32_t parent = open.empty() ? kNone : open.back();
    open.push_back(row);
    return parent;
  }

 private:
  const std::vector<ModuleSpan>& spans_;
  std::unordered_map<uint16_t, std::vector<uint32_t>> open_;
};

void AddTrace(const Trace& trace, std::map<std::string, ModuleRow>* rows) {
  const std::vector<ModuleSpan>& spans = ModuleSpans(trace);
  const LaunchedWork work(trace);
  const PassNesting& passes = NestedPasses(trace);
  SelfTimes nesting(spans);
  const std::vector<bool> evaluations = EvaluationForwards(trace, spans);
  std::unordered_map<uint32_t, ModuleRow> by_name;
  for (uint32_t row = 0; row < spans.size(); ++row) {
    const ModuleSpan& span = spans[row];
    const std::vector<Interval> others =
        passes.InModule(span.name, span.writer, span.start, span.end);
    const int64_t ns = span.end - span.start - Length(others);
    ModuleRow& module = by_name[span.name];
    if (module.forward.count + module.evaluation.count == 0) {
      module.first = span.start - trace.first_ns;
    }
    if (evaluations[row]) {
      module.evaluation.Add(ns);
      continue;
    }
    module.forward.Add(ns);
    module.self_ns += ns;
    module.gpu_ns += work.Between(span.writer, span.start, span.end);
    for (const auto& [start, end] : others) module.gpu_ns -= work.Between(span.writer, start, end);
    const uint32_t parent = nesting.Enter(row);
    if (parent != kNone) by_name[spans[parent].name].self_ns -= ns;
  }
  for (const auto& [id, counted] : by_name) {
    const std::string name(trace.dictionary.String(id));
    ModuleRow& module = (*rows)[name];
    module.first = module.ranks == 0 ? counted.first : std::min(module.first, counted.first);
    module.name = name;
    module.forward.Add(counted.forward);
    module.evaluation.Add(counted.evaluation);
    module.self_ns += counted.self_ns;
    module.gpu_ns += counted.gpu_ns;
    ++module.ranks;
  }
}

using ModuleCounts =
    std::array<int64_t, kPasses + 3>;  // by pass; DeepSpeed's FLOPs, MACs, old MACs

// Counts a training step, or where none is recorded a forward that only evaluates.
std::unordered_map<uint32_t, ModuleCounts> CountByModule(const Trace& trace,
                                                         const std::vector<OpPlace>& places,
                                                         bool trains) {
  const std::vector<FlopCount> counts = CountFlops(trace, FlopRule::kCounter);
  const std::vector<FlopCount> deepspeed = CountFlops(trace, FlopRule::kDeepSpeed);
  const std::vector<FlopCount> old = CountFlops(trace, FlopRule::kDeepSpeedOld);
  std::unordered_map<uint32_t, ModuleCounts> by_module;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (trains && places[i].in_evaluation) continue;
    ModuleCounts& sums = by_module[places[i].module];
    AddCapped(counts[i].flops, &sums[static_cast<size_t>(places[i].pass)]);
    if (places[i].pass != Pass::kForward) continue;
    AddCapped(deepspeed[i].flops, &sums[kPasses]);
    AddCapped(deepspeed[i].macs, &sums[kPasses + 1]);
    AddCapped(old[i].macs, &sums[kPasses + 2]);
  }
  return by_module;
}

// Each operator counts for its module and for those whose names are the beginning of its name.
void AddFlops(const std::vector<Trace>& traces, std::map<std::string, ModuleRow>* rows) {
  for (const Trace& trace : traces) {
    if (trace.operators.size() == 0) continue;
    const std::vector<OpPlace> places = PlaceOperators(trace);
    const bool trains = std::ranges::any_of(
        places, [](const OpPlace& place) { return place.module != 0 && !place.in_evaluation; });
    std::map<std::string, ModuleCounts> inclusive;
    for (const auto& [module, counts] : CountByModule(trace, places, trains)) {
      std::string name(trace.dictionary.String(module));
      while (!name.empty()) {
        ModuleCounts& sums = inclusive[name];
        for (size_t i = 0; i < sums.size(); ++i) AddCapped(counts[i], &sums[i]);
        const size_t dot = name.rfind('.');
        name.resize(dot == std::string::npos ? 0 : dot);
      }
    }
    const int64_t steps = trains ? CountRecordedSteps(trace, places)
                                 : std::max<int64_t>(1, SplitByEvaluation(trace).evaluations);
    for (auto& [name, row] : *rows) {
      const auto found = inclusive.find(name);
      if (found == inclusive.end()) continue;
      row.forward_flops = found->second[0] / steps;
      row.backward_flops = found->second[1] / steps;
      row.recompute_flops = found->second[2] / steps;
      row.deepspeed_flops = found->second[kPasses] / steps;
      row.deepspeed_macs = found->second[kPasses + 1] / steps;
      row.deepspeed_old_macs = found->second[kPasses + 2] / steps;
    }
    return;  // ranks compute the same; the first that was recorded speaks for them
  }
}

// Roots and siblings by first forward, each subtree together.
void AppendSubtrees(const std::map<std::string, ModuleRow>& rows,
                    const std::map<std::string, std::vector<const ModuleRow*>>& children,
                    const std::string& parent, std::vector<ModuleRow>* sorted) {
  const auto found = children.find(parent);
  if (found == children.end()) return;
  for (const ModuleRow* const row : found->second) {
    sorted->push_back(*row);
    AppendSubtrees(rows, children, row->name, sorted);
  }
}

// The nearest module above that ran itself; containers such as ModuleList never do.
std::string ParentOf(const std::map<std::string, ModuleRow>& rows, std::string name) {
  for (size_t dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    name.resize(dot);
    if (rows.contains(name)) return name;
  }
  return {};
}

const ColumnsOf<ModuleRow> kModuleColumns = {
    {"module", Unit::kText, "The module's name in the model.",
     [](const ModuleRow& row) { return row.name; }},
    {"calls", Unit::kCount, "The module's forwards in training.",
     [](const ModuleRow& row) { return row.forward.count; }},
    {"total_ns", Unit::kNs, "The time of these forwards, added up.",
     [](const ModuleRow& row) { return row.forward.total_ns; }},
    {"self_ns", Unit::kNs, "The part of that time outside of the module's children.",
     [](const ModuleRow& row) { return row.self_ns; }},
    {"excess_ns", Unit::kNs,
     "How much more a step the late rank spends in the module itself than the median of the "
     "others.",
     [](const ModuleRow& row) { return row.excess_ns == 0 ? Cell() : Cell(row.excess_ns); }},
    {"gpu_ns", Unit::kNs, "The device work that these forwards launched.",
     [](const ModuleRow& row) { return row.gpu_ns; }},
    {"mean_ns", Unit::kNs, "The mean time of one forward.",
     [](const ModuleRow& row) { return row.forward.mean_ns(); }, Shown::kDetail},
    {"forward_flops", Unit::kFlops, "The operations of these forwards.",
     [](const ModuleRow& row) { return row.forward_flops; }},
    {"backward_flops", Unit::kFlops, "The measured operations of the module's backward passes.",
     [](const ModuleRow& row) { return row.backward_flops; }, Shown::kDetail},
    {"recompute_flops", Unit::kFlops,
     "The operations of forwards that activation checkpointing ran again.",
     [](const ModuleRow& row) { return row.recompute_flops; }, Shown::kDetail},
    {"deepspeed_flops", Unit::kFlops, "The operations of one forward, by DeepSpeed's rule.",
     [](const ModuleRow& row) { return row.deepspeed_flops; }, Shown::kDetail},
    {"deepspeed_macs", Unit::kFlops, "The multiply-adds of one forward, by DeepSpeed's rule.",
     [](const ModuleRow& row) { return row.deepspeed_macs; }, Shown::kDetail},
    {"deepspeed_old_macs", Unit::kFlops,
     "The multiply-adds of one forward, by the rule of DeepSpeed's older releases.",
     [](const ModuleRow& row) { return row.deepspeed_old_macs; }, Shown::kDetail},
    {"min_ns", Unit::kNs, "The shortest forward.",
     [](const ModuleRow& row) { return row.forward.shortest_ns(); }, Shown::kDetail},
    {"max_ns", Unit::kNs, "The longest forward.",
     [](const ModuleRow& row) { return row.forward.max_ns; }, Shown::kDetail},
    {"evaluation_calls", Unit::kCount, "The forwards that no backward follows.",
     [](const ModuleRow& row) { return row.evaluation.count; }, Shown::kDetail},
    {"evaluation_mean_ns", Unit::kNs, "The mean time of one forward that no backward follows.",
     [](const ModuleRow& row) { return row.evaluation.mean_ns(); }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that have the module.",
     [](const ModuleRow& row) { return row.ranks; }, Shown::kDetail},
};

}  // namespace

std::vector<ModuleRow> SummarizeModules(const std::vector<Trace>& traces) {
  std::map<std::string, ModuleRow> rows;
  for (const Trace& trace : traces) AddTrace(trace, &rows);
  AddFlops(traces, &rows);
  std::map<std::string, std::vector<const ModuleRow*>> children;
  for (const auto& [name, row] : rows) children[ParentOf(rows, name)].push_back(&row);
  for (auto& [parent, list] : children) {
    std::stable_sort(list.begin(), list.end(),
                     [](const ModuleRow* a, const ModuleRow* b) { return a->first < b->first; });
  }
  std::vector<ModuleRow> sorted;
  AppendSubtrees(rows, children, "", &sorted);
  return sorted;
}

namespace {

// Of the rank that the others wait for; the note about it, or nothing where none is late.
std::string AddExcess(const Run& run, std::vector<ModuleRow>* rows) {
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  if (stragglers.empty() || TakeTurns(stragglers)) return "";
  if (RulingOn(run, Claim::kLateRank).is_undecided()) return "";
  std::map<std::string_view, int64_t> excess;
  const std::vector<ModuleExcess> found = ExcessOfModules(run, stragglers[0].trace);
  for (const ModuleExcess& of : found) excess[of.name] = of.ns;
  for (ModuleRow& row : *rows) {
    if (const auto of = excess.find(row.name); of != excess.end()) row.excess_ns = of->second;
  }
  if (excess.empty()) return "";
  return fmt::format(
      "excess is what {} spends more in the module itself, a step, than the median "
      "of the other ranks",
      RankName(run.traces[stragglers[0].trace]));
}

}  // namespace

Table TabulateModules(const Run& run, const ReportOptions&) {
  std::vector<ModuleRow> rows = SummarizeModules(run.traces);
  const std::string excess = AddExcess(run, &rows);
  SortRows(&rows, [](const ModuleRow& a, const ModuleRow& b) { return a.self_ns > b.self_ns; });
  Table table = TableOf("Forwards of modules by their own time, all ranks", kModuleColumns, rows);
  if (table.rows.empty()) {
    table.notes.push_back(AdviceFor(
        run, {.ours = "no module ran; modules come from PyTorch's hooks, at --level full",
              .profiler = "the file has no module; torch.profiler records them with "
                          "with_stack=True",
              .other = "the file has no module; ranktap run --level full and torch.profiler with "
                       "with_stack=True record them"}));
    return table;
  }
  table.notes = NotesOfUnknownFlops(run);
  if (!excess.empty()) table.notes.insert(table.notes.begin(), excess);
  return table;
}

}  // namespace ranktap::collector
