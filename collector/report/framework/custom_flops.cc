#include "collector/report/framework/custom_flops.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/reports.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "collector/facts/flops/custom_work.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"

namespace ranktap::collector {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"kernel", "graph", "operator", "function",
                                                        "own kernel"};

struct CustomFlopsLine {
  const Trace* trace = nullptr;
  CustomWork work;
  int64_t whole_ns = 0;
};

Cell CountCell(const std::optional<int64_t>& count) { return count ? Cell(*count) : Cell(); }

std::string_view KnownBy(const CustomWork& work) {
  if (!work.flops) return "nobody";
  return work.is_said ? "--flops-of" : "its source";
}

const ColumnsOf<CustomFlopsLine> kCustomFlopsColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const CustomFlopsLine& line) { return RankCell(*line.trace); }, Shown::kDetail},
    {"name", Unit::kText, "The operator or kernel.",
     [](const CustomFlopsLine& line) { return std::string(line.work.name); }},
    {"kind", Unit::kText,
     "A compiler's kernel or graph, an operator of another library, an autograd function, or the "
     "program's own kernel, as of Triton.",
     [](const CustomFlopsLine& line) {
       return std::string(kKindNames[static_cast<size_t>(line.work.kind)]);
     }},
    {"calls", Unit::kCount, "The recorded calls, or launches.",
     [](const CustomFlopsLine& line) { return line.work.calls; }},
    {"time_ns", Unit::kNs, "The device's time in it; without a device the host's own time.",
     [](const CustomFlopsLine& line) { return line.work.time_ns; }},
    {"time_percent", Unit::kPercent,
     "The share of the rank's computing kernels; without a device of its operators.",
     [](const CustomFlopsLine& line) { return Percent(line.work.time_ns, line.whole_ns); }},
    {"flops", Unit::kFlops,
     "The operations of these calls as FlopCounterMode counts them; empty: nobody knows.",
     [](const CustomFlopsLine& line) { return CountCell(line.work.flops); }},
    {"elementwise_ops", Unit::kFlops,
     "One for each element and fused operator, and the products' FLOPs; empty: not known.",
     [](const CustomFlopsLine& line) { return CountCell(line.work.operations); }},
    {"known_by", Unit::kText, "its source, --flops-of, or nobody.",
     [](const CustomFlopsLine& line) { return std::string(KnownBy(line.work)); }, Shown::kDetail},
    {"operators", Unit::kText, "The operators that the compiler fused into the kernel.",
     [](const CustomFlopsLine& line) {
       return fmt::format("{}", fmt::join(line.work.operators, " "));
     },
     Shown::kProse},
    {"line", Unit::kText, "The program's lines that it computes.",
     [](const CustomFlopsLine& line) {
       return fmt::format("{}", fmt::join(line.work.lines, ", "));
     },
     Shown::kProse},
    {"module", Unit::kText, "The modules whose forward or backward it belongs to.",
     [](const CustomFlopsLine& line) {
       return fmt::format("{}", fmt::join(line.work.modules, ", "));
     },
     Shown::kDetail},
};

bool HasUnknown(const std::vector<CustomFlopsLine>& lines,
                std::initializer_list<CustomKind> kinds) {
  return std::any_of(lines.begin(), lines.end(), [&](const CustomFlopsLine& line) {
    return !line.work.flops && std::find(kinds.begin(), kinds.end(), line.work.kind) != kinds.end();
  });
}

std::string WhyNothing(const Run& run) {
  const bool has_operators = std::any_of(run.traces.begin(), run.traces.end(),
                                         [](const Trace& of) { return of.operators.size() > 0; });
  return has_operators
             ? "every recorded operator is PyTorch's own and has a formula or no products"
             : AdviceFor(run, {.ours = "no operator was recorded; ranktap run --level full "
                                       "records PyTorch's",
                               .profiler = "the file has no operator; "
                                           "torch.profiler records them with "
                                           "ProfilerActivity.CPU",
                               .other = "the file has no operator; torch.profiler's "
                                        "has PyTorch's"});
}

void AddAdvice(const std::vector<CustomFlopsLine>& lines, std::vector<std::string>* notes) {
  if (HasUnknown(lines, {CustomKind::kGeneratedKernel})) {
    notes->emplace_back(
        "--compiled DIR reads what torch.compile wrote about its kernels: TORCH_TRACE's logs, "
        "TORCH_COMPILE_DEBUG's folders, or TORCHINDUCTOR_CACHE_DIR");
  }
  if (HasUnknown(lines, {CustomKind::kCompiledGraph})) {
    notes->emplace_back(
        "kernels of a compiled graph have no records: TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 "
        "gives those of a CPU some");
  }
  if (HasUnknown(lines,
                 {CustomKind::kOperator, CustomKind::kAutogradFunction, CustomKind::kOwnKernel})) {
    notes->emplace_back(
        "--flops-of NAME=EXPRESSION says what a call computes: "
        "--flops-of mylib::attend='4*numel(in0)*in1[2]'");
  }
}

std::vector<std::string> SharesOfUnknown(const Run& run) {
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    const CustomWorks& works = FindCustomWork(trace);
    if (works.unknown_ns * 100 < works.time_ns || works.unknown_ns == 0) continue;
    notes.push_back(fmt::format(
        "{}{:.1f} % of the {} time is in work whose FLOPs nobody knows, which no table counts",
        run.traces.size() > 1 ? RankName(trace) + ": " : "",
        100.0 * static_cast<double>(works.unknown_ns) / static_cast<double>(works.time_ns),
        works.on_device ? "kernels'" : "operators'"));
  }
  return notes;
}

}  // namespace

std::vector<std::string> NotesOfUnknownFlops(const Run& run) {
  std::vector<std::string> notes = SharesOfUnknown(run);
  for (std::string& note : notes) note += ": report custom-flops lists it";
  return notes;
}

std::set<std::string, std::less<>> NamesOfUnknownFlops(const Trace& trace) {
  std::set<std::string, std::less<>> names;
  for (const CustomWork& work : FindCustomWork(trace).rows) {
    if (!work.flops) names.emplace(work.name);
  }
  return names;
}

Table TabulateCustomFlops(const Run& run, const ReportOptions&) {
  std::vector<CustomFlopsLine> lines;
  for (const Trace& trace : run.traces) {
    const CustomWorks& works = FindCustomWork(trace);
    for (const CustomWork& work : works.rows) lines.push_back({&trace, work, works.time_ns});
  }
  Table table = TableOf("Work beside PyTorch's formulas", kCustomFlopsColumns, lines);
  table.notes = SharesOfUnknown(run);
  AddAdvice(lines, &table.notes);
  if (lines.empty()) table.notes.push_back(WhyNothing(run));
  return table;
}

}  // namespace ranktap::collector
