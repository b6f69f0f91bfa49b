#include "collector/report/framework/op_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/python_stacks.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/framework/custom_flops.h"
#include "collector/report/framework/op_shares.h"
#include "collector/report/human_units.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

struct SelfTotals {
  int64_t cpu_ns = 0, device_ns = 0;
};

SelfTotals TotalSelfTimes(const std::vector<OpRow>& rows) {
  SelfTotals totals;
  for (const OpRow& row : rows) {
    totals.cpu_ns += row.self_cpu_ns;
    if (row.on_device && !row.is_annotation) totals.device_ns += row.self_device_ns;
  }
  return totals;
}

// As torch's table() does without a key.
void SortOps(const SelfTotals& totals, std::vector<OpRow>* rows) {
  int64_t OpRow::*const by = totals.device_ns > 0 ? &OpRow::self_device_ns : &OpRow::self_cpu_ns;
  SortRows(rows, [by](const OpRow& a, const OpRow& b) { return a.*by > b.*by; });
}

struct OpLine {
  const Trace* trace = nullptr;
  OpRow op;
  SelfTotals totals;  // of the rank
  bool knows_flops = true;
};

// Never 0 where nobody knows.
Cell FlopsOf(const OpLine& line, int64_t flops) {
  return flops != 0 || line.knows_flops ? Cell(flops) : Cell();
}

// Where there is no room for all: the times that torch's users sort by, and the rank where rows of
// several would look alike.
ColumnsOf<OpLine> Columns(const ReportOptions& options, bool several_ranks) {
  const bool by_stack = options.by_stack > 0;
  const Shown with_stack = by_stack ? Shown::kDetail : Shown::kAlways;
  const auto group = [](bool by) { return by ? Shown::kAlways : Shown::kDetail; };
  return {
      {"rank", Unit::kCount, kRankMeaning, [](const OpLine& line) { return RankCell(*line.trace); },
       several_ranks ? Shown::kAlways : Shown::kDetail},
      {"name", Unit::kText, "The operator, range or kernel.",
       [](const OpLine& line) { return line.op.name; }},
      {"self_cpu_percent", Unit::kPercent, "The share of the rank's self CPU time.",
       [](const OpLine& line) { return Percent(line.op.self_cpu_ns, line.totals.cpu_ns); },
       Shown::kDetail},
      {"self_cpu_ns", Unit::kNs, "The host's time in it, without its children.",
       [](const OpLine& line) { return line.op.self_cpu_ns; }},
      {"cpu_total_percent", Unit::kPercent,
       "The CPU time with children, as a share of the rank's self CPU time.",
       [](const OpLine& line) { return ShareOfCpu(line.op, line.totals.cpu_ns); }, Shown::kDetail},
      {"cpu_total_ns", Unit::kNs, "The host's time in it, children included.",
       [](const OpLine& line) { return line.op.cpu_ns; }, with_stack},
      {"cpu_avg_ns", Unit::kNs, "The host's mean time in one call, children included.",
       [](const OpLine& line) { return line.op.cpu_ns / line.op.count; }, Shown::kDetail},
      {"self_cuda_ns", Unit::kNs, "The device work that it launched itself.",
       [](const OpLine& line) { return line.op.self_device_ns; }, with_stack},
      {"self_cuda_percent", Unit::kPercent, "The share of the rank's CUDA time; empty: a range's.",
       [](const OpLine& line) { return ShareOfDevice(line.op, line.totals.device_ns); },
       Shown::kDetail},
      {"cuda_total_ns", Unit::kNs, "The device work that it and its children launched.",
       [](const OpLine& line) { return line.op.device_ns; }, with_stack},
      {"cuda_avg_ns", Unit::kNs, "The mean device work of one call, children included.",
       [](const OpLine& line) { return line.op.device_ns / line.op.count; }, Shown::kDetail},
      {"cpu_mem_bytes", Unit::kBytes,
       "The host memory allocated less the memory freed, children included.",
       [](const OpLine& line) { return line.op.cpu_bytes; }, Shown::kDetail},
      {"self_cpu_mem_bytes", Unit::kBytes,
       "The host memory allocated less the memory freed, without children.",
       [](const OpLine& line) { return line.op.self_cpu_bytes; }, Shown::kDetail},
      {"cuda_mem_bytes", Unit::kBytes,
       "The device memory allocated less the memory freed, children included.",
       [](const OpLine& line) { return line.op.device_bytes; }, Shown::kDetail},
      {"self_cuda_mem_bytes", Unit::kBytes,
       "The device memory allocated less the memory freed, without children.",
       [](const OpLine& line) { return line.op.self_device_bytes; }, Shown::kDetail},
      {"calls", Unit::kCount, "The operator's calls, or the kernel's launches.",
       [](const OpLine& line) { return line.op.count; }},
      {"input_shapes", Unit::kText, "The shapes that the operator took.",
       [](const OpLine& line) { return line.op.shapes; }, group(options.by_shape)},
      {"source", Unit::kText, "The frames of the Python stack (--group-by-stack).",
       [](const OpLine& line) { return Joined(line.op.stack); },
       by_stack ? Shown::kProse : Shown::kDetail},
      {"module", Unit::kText,
       "The torch.nn.Module whose forward it belongs to (--group-by-module).",
       [](const OpLine& line) { return line.op.module; }, group(options.by_module)},
      {"pass", Unit::kText, "The pass that ran it: forward, backward or recompute.",
       [](const OpLine& line) { return line.op.pass; }, group(options.by_module)},
      {"flops", Unit::kFlops,
       "The operations as torch.profiler counts them: matrix products, convolutions, add and mul.",
       [](const OpLine& line) { return FlopsOf(line, line.op.flops); }, Shown::kDetail},
      {"counted_flops", Unit::kFlops,
       "The operations as FlopCounterMode counts them: attention and convolutions' backwards too.",
       [](const OpLine& line) { return FlopsOf(line, line.op.counted_flops); }, Shown::kDetail},
      {"where", Unit::kText, "host, or device for a kernel or an annotation there.",
       [](const OpLine& line) { return line.op.on_device ? "device" : "host"; }, Shown::kDetail},
  };
}

// The keys of torch's table(sort_by=): older releases say cuda, newer ones device.
void NameAsTorch(Table* table) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"cpu_total_ns", "cpu_time_total"},
      {"self_cpu_ns", "self_cpu_time_total"},
      {"cuda_total_ns", "cuda_time_total"},
      {"self_cuda_ns", "self_cuda_time_total"},
      {"cpu_avg_ns", "cpu_time"},
      {"cuda_avg_ns", "cuda_time"},
      {"cpu_mem_bytes", "cpu_memory_usage"},
      {"self_cpu_mem_bytes", "self_cpu_memory_usage"},
      {"cuda_mem_bytes", "cuda_memory_usage"},
      {"self_cuda_mem_bytes", "self_cuda_memory_usage"},
      {"calls", "count"}};
  for (TableColumn& column : table->columns) {
    for (const auto& [name, key] : kKeys) {
      if (column.name != name) continue;
      std::string of_device(key);
      if (const size_t at = of_device.find("cuda"); at != of_device.npos) {
        of_device.replace(at, 4, "device");
      }
      column.also = {std::string(key), std::move(of_device)};
    }
  }
}

// ", of 3 recorded steps and 1 forward that only evaluates", or what of that is there.
std::string OfSteps(const Trace& trace) {
  const RecordedOperators operators = SplitByEvaluation(trace);
  const std::vector<bool> recorded = RecordedSteps(trace, operators.training);
  const auto steps = std::count(recorded.begin(), recorded.end(), true);
  std::string text;
  if (steps > 0) text = fmt::format(", of {} recorded step{}", steps, steps == 1 ? "" : "s");
  if (operators.evaluations > 0) {
    text += fmt::format("{} {} forward{} that only evaluate{}", text.empty() ? ", of" : " and",
                        operators.evaluations, operators.evaluations == 1 ? "" : "s",
                        operators.evaluations == 1 ? "s" : "");
  }
  return text;
}

// "rank 0: self CPU time total 1.909 ms, self CUDA time total 350.7 us, of 3 recorded steps"
std::string NoteOf(const Trace& trace, const SelfTotals& totals) {
  std::string note =
      fmt::format("{}: self CPU time total {}", RankName(trace), FormatNs(totals.cpu_ns));
  if (totals.device_ns > 0) {
    note += fmt::format(", self CUDA time total {}", FormatNs(totals.device_ns));
  }
  if (!trace.is_ours()) return note;
  if (trace.operators.size() == 0) {
    const bool has_modules = !ModuleSpans(trace).empty();
    return has_modules ? note +
                             "; no step was recorded operator by operator: --schedule counts "
                             "steps from the begin of the window"
                       : note;
  }
  return note + OfSteps(trace);
}

}  // namespace

Table TabulateOps(const Run& run, const ReportOptions& options) {
  std::vector<OpLine> lines;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    std::vector<OpRow> rows = AverageOps(trace, options);
    const SelfTotals totals = TotalSelfTimes(rows);
    if (options.top_level) {
      std::erase_if(rows, [](const OpRow& row) { return row.is_inside; });
    }
    SortOps(totals, &rows);
    const auto unknown = NamesOfUnknownFlops(trace);
    for (OpRow& row : rows) {
      const bool knows_flops = !unknown.contains(row.name);
      lines.push_back({&trace, std::move(row), totals, knows_flops});
    }
    notes.push_back(NoteOf(trace, totals));
  }
  Table table = TableOf("Operators, as torch's key_averages()",
                        Columns(options, run.traces.size() > 1), lines);
  NameAsTorch(&table);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector
