#include "collector/report/device/kernel_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/device/hta_kernels.h"
#include "collector/report/duration_columns.h"
#include "collector/report/human_units.h"
#include "collector/trace/at_once.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

struct KernelSum {
  DurationDistribution time;
  int64_t untimed = 0;
};

// Kernels of one name, and of one shape where that groups: 0 else.
struct Group {
  uint32_t name = 0, shape = 0;
  KernelSum of;
  // Those that are not in `of` yet: one by one each went through memory.
  uint32_t next = 0;
  std::array<int64_t, 32> some{};

  void AddSome() { of.time.Add(std::span(some).first(std::exchange(next, 0))); }
};

// Finds the group that an event belongs to. By name alone it costs an array index an event; names
// are looked at once per id.
class Groups {
 public:
  Groups(const Trace& trace, bool by_shape) : by_shape_(by_shape) {
    by_name_.resize(trace.dictionary.strings() + 1, kNone);
  }
  Group& Of(uint32_t name, uint32_t shape) {
    name = std::min(name, static_cast<uint32_t>(by_name_.size() - 1));
    uint32_t& at =
        by_shape_ ? by_both_.try_emplace({name, shape}, kNone).first->second : by_name_[name];
    if (at == kNone) {
      at = static_cast<uint32_t>(groups_.size());
      groups_.push_back({.name = name, .shape = by_shape_ ? shape : 0});
    }
    return groups_[at];
  }
  std::vector<Group> Take() { return std::move(groups_); }

 private:
  const bool by_shape_;
  std::vector<uint32_t> by_name_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> by_both_;
  std::vector<Group> groups_;
};

std::vector<Group> CountKernels(const Trace& trace, bool by_shape) {
  Groups groups(trace, by_shape);
  const Kernels& kernels = trace.kernels;
  const TimeColumn::View start = kernels.start.view(), end = kernels.end.view();
  const IdColumn::View name = kernels.name.view(), shape = kernels.shape.view();
  for (size_t i = 0, rows = kernels.size(); i < rows; ++i) {
    Group& group = groups.Of(name[i], by_shape ? shape[i] : 0);
    const int64_t began = start[i];
    if (began == kUntimed) {
      ++group.of.untimed;
      continue;
    }
    group.some[group.next++] = end[i] - began;
    if (group.next == group.some.size()) group.AddSome();
  }
  std::vector<Group> list = groups.Take();
  for (Group& group : list) group.AddSome();
  return list;
}

std::string NameIn(std::string_view recorded, KernelNames form) {
  if (form == KernelNames::kMangled && !recorded.empty()) return std::string(recorded);
  std::string readable = ReadableKernelName(recorded);
  return form == KernelNames::kBase ? BaseKernelName(readable) : readable;
}

std::string Sizes(const uint32_t (&sizes)[3]) {
  return fmt::format("{}x{}x{}", sizes[0], sizes[1], sizes[2]);
}

using KernelKey = std::tuple<std::string, std::string, std::string>;  // name, grid, block
using KernelSums = std::map<KernelKey, KernelSum>;

KernelSums SumKernels(const Trace& trace, const ReportOptions& options) {
  KernelSums sums;
  for (Group& group : CountKernels(trace, options.by_grid)) {
    const proto::LaunchShape* const shape = trace.dictionary.Shape(group.shape);
    KernelSum& sum = sums[{NameIn(trace.dictionary.String(group.name), options.kernel_names),
                           shape == nullptr ? "" : Sizes(shape->grid),
                           shape == nullptr ? "" : Sizes(shape->block)}];
    sum.time.Add(std::move(group.of.time));
    sum.untimed += group.of.untimed;
  }
  return sums;
}

std::string WhyNoKernels(const Run& run) {
  bool captured = false, graphs = false;
  for (const Trace& trace : run.traces) {
    captured |= trace.is_ours();
    graphs |= trace.graph_launches.size() > 0;
  }
  if (graphs) return "kernels ran in CUDA graphs only, timed as a whole: ranktap report RUN graphs";
  return captured ? "no kernel ran while capture was at level kernels or full"
                  : "no kernel is in it";
}

struct KernelLine {
  KernelRow kernel;
  int64_t total_ns = 0;  // of all kernels
};

const ColumnsOf<KernelLine> kName = {
    {"name", Unit::kText, "The kernel, named as --kernel-names says.",
     [](const KernelLine& line) { return line.kernel.name; }},
};
const ColumnsOf<KernelLine> kGrid = {
    {"grid_xyz", Unit::kText, "The blocks of the launch.",
     [](const KernelLine& line) { return line.kernel.grid; }, Shown::kWanted},
    {"block_xyz", Unit::kText, "The threads of a block.",
     [](const KernelLine& line) { return line.kernel.block; }, Shown::kWanted},
};
const ColumnsOf<KernelLine> kTimes = JoinedColumns<KernelLine>(
    {{
         {"calls", Unit::kCount, "How often the devices ran it.",
          [](const KernelLine& line) { return line.kernel.time.count + line.kernel.untimed; }},
         {"total_ns", Unit::kNs, "The durations, added up.",
          [](const KernelLine& line) { return line.kernel.time.total_ns; }},
         {"share_percent", Unit::kPercent, "The share of the time of all kernels.",
          [](const KernelLine& line) {
            return line.total_ns == 0 ? Cell(0.0)
                                      : Percent(line.kernel.time.total_ns, line.total_ns);
          }},
     },
     DurationColumns<KernelLine>(
         "", "kernels",
         [](const KernelLine& line) -> const DurationDistribution& { return line.kernel.time; }),
     {
         {"ranks", Unit::kCount, "The number of ranks that ran it.",
          [](const KernelLine& line) { return line.kernel.ranks; }, Shown::kDetail},
     }});

// The part of the question that the answer lacks.
std::vector<std::string> NotesOn(const Run& run, const ReportOptions& options) {
  std::vector<std::string> notes;
  if (options.kernel_names != KernelNames::kMangled) return notes;
  std::set<std::string_view> all, demangled;
  for (const Trace& trace : run.traces) {
    for (size_t i = 0; i < trace.kernels.size(); ++i) {
      const std::string_view name = trace.dictionary.String(trace.kernels.name[i]);
      all.insert(name);
      if (IsDemangled(name)) demangled.insert(name);
    }
  }
  if (!demangled.empty()) {
    notes.push_back(
        fmt::format("{} of {} were recorded demangled only; nothing tells their mangled names",
                    demangled.size(), Counted(all.size(), "name")));
  }
  return notes;
}

}  // namespace

std::vector<KernelRow> SummarizeKernels(const std::vector<Trace>& traces,
                                        const ReportOptions& options) {
  std::map<KernelKey, KernelRow> rows;
  const auto sum_up = [&](size_t t) { return SumKernels(traces[t], options); };
  const auto add = [&rows](size_t, KernelSums&& of_trace) {
    for (auto& [key, sum] : of_trace) {
      KernelRow& row = rows[key];
      std::tie(row.name, row.grid, row.block) = key;
      row.time.Add(std::move(sum.time));
      row.untimed += sum.untimed;
      ++row.ranks;
    }
    return true;
  };
  MakeAtOnce(traces.size(), sum_up, add);
  std::vector<KernelRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::sort(sorted.begin(), sorted.end(), [](const KernelRow& a, const KernelRow& b) {
    return std::tie(b.time.total_ns, a.name, a.grid, a.block) <
           std::tie(a.time.total_ns, b.name, b.grid, b.block);
  });
  return sorted;
}

Table TabulateKernels(const Run& run, const ReportOptions& options) {
  if (options.hta_compat) {
    Table table = TabulateHtaKernels(run);
    if (options.by_grid || options.kernel_names != KernelNames::kDemangled) {
      table.notes.push_back("HTA groups by demangled name alone; the other forms are left out");
    }
    return table;
  }
  std::vector<KernelLine> lines;
  int64_t total = 0, untimed = 0;
  for (KernelRow& row : SummarizeKernels(run.traces, options)) {
    total += row.time.total_ns;
    untimed += row.untimed;
    lines.push_back({std::move(row)});
  }
  for (KernelLine& line : lines) line.total_ns = total;
  Table table = TableOf(
      "GPU kernels, all ranks",
      JoinedColumns({kName, options.by_grid ? kGrid : ColumnsOf<KernelLine>(), kTimes}), lines);
  table.notes = NotesOn(run, options);
  if (lines.empty()) table.notes.push_back(WhyNoKernels(run));
  if (untimed > 0) {
    table.notes.push_back(fmt::format(
        "{} kernel records came from CUPTI without times; they count as calls only", untimed));
  }
  return table;
}

}  // namespace ranktap::collector
