#include "collector/report/text/summary_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr size_t kUsualWidth = 100;
constexpr size_t kTopRows = 5;

Cell Or(const std::optional<uint32_t>& value) {
  return value ? Cell(static_cast<int64_t>(*value)) : Cell();
}

std::string FirstLine(const RunSummary& summary, const RunInfo& info) {
  const size_t traces = summary.ranks.size();
  std::string line = "ranktap: " + Counted(traces, "trace");
  if (info.end_realtime_ns) {
    line += fmt::format(
        " in {}", FormatNs(static_cast<int64_t>(*info.end_realtime_ns - info.start_realtime_ns)));
  }
  if (info.exit_status) line += fmt::format(", the command exited with {}", *info.exit_status);
  if (info.exit_signal) line += fmt::format(", the command got signal {}", *info.exit_signal);
  if (summary.simulated) line += " (SIMULATED GPU: times mean nothing)";
  return line + "\n";
}

Table RankTable(const RunSummary& summary) {
  Table table{.name = "ranks",
              .title = "",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kText},
                          {"gpu_busy_percent", Unit::kPercent},
                          {"kernels", Unit::kCount},
                          {"kernel_ns", Unit::kNs},
                          {"copies", Unit::kCount, Shown::kDetail},
                          {"api_ns", Unit::kNs},
                          {"ranges", Unit::kCount},
                          {"lost", Unit::kCount},
                          {"status", Unit::kText, Shown::kProse},
                          {"file", Unit::kText, Shown::kDetail},
                          {"door", Unit::kText, Shown::kDetail}}};
  for (const RankRow& row : summary.ranks) {
    std::string status(NameOf(row.info.status));
    if (!row.info.detail.empty() && row.info.status != TraceStatus::kClosed) {
      status += ": " + row.info.detail;
    }
    table.rows.push_back({Or(row.info.rank), row.device, row.busy ? Cell(*row.busy) : Cell(),
                          row.kernels, row.kernel_ns, row.copies, row.api_ns, row.ranges,
                          static_cast<int64_t>(row.lost), std::move(status), row.info.file,
                          row.info.door});
  }
  return table;
}

Table KernelTable(const RunSummary& summary) {
  Table table{.name = "kernels",
              .title = "",
              .columns = {{"top kernels", Unit::kText},
                          {"calls", Unit::kCount},
                          {"total_ns", Unit::kNs},
                          {"share_percent", Unit::kPercent},
                          {"mean_ns", Unit::kNs, Shown::kDetail}}};
  for (const KernelRow& row : summary.kernels) {
    const double share = summary.kernel_ns == 0 ? 0.0
                                                : 100.0 * static_cast<double>(row.time.total_ns) /
                                                      static_cast<double>(summary.kernel_ns);
    table.rows.push_back({ShortKernelName(row.name), row.time.count + row.untimed,
                          row.time.total_ns, share, row.time.mean_ns()});
  }
  return table;
}

Table RangeTable(const RunSummary& summary) {
  Table table{.name = "ranges",
              .title = "",
              .columns = {{"top NVTX ranges", Unit::kText},
                          {"calls", Unit::kCount},
                          {"total_ns", Unit::kNs},
                          {"gpu_ns", Unit::kNs},
                          {"mean_ns", Unit::kNs, Shown::kDetail}}};
  for (const RangeRow& row : summary.ranges) {
    const std::string name =
        row.domain.empty() ? row.name : fmt::format("{}: {}", row.domain, row.name);
    table.rows.push_back({name, row.time.count, row.time.total_ns, row.gpu_ns, row.time.mean_ns()});
  }
  return table;
}

// Without the line that a report has as its title.
std::string Body(const Table& table, size_t width, size_t limit) {
  return table.rows.empty() ? "" : FormatText(table, width, limit);
}

}  // namespace

std::string FormatSummary(const RunSummary& summary, const RunInfo& info, const std::string& path,
                          size_t width) {
  if (width == 0) width = kUsualWidth;
  std::string text = FirstLine(summary, info);
  text += Body(RankTable(summary), width, 0);
  text += Body(KernelTable(summary), width, kTopRows);
  text += Body(RangeTable(summary), width, kTopRows);
  text += "\n";
  if (summary.launches_without_kernel > 0) {
    text += fmt::format("  launches without a kernel record: {}\n",
                        FormatCount(summary.launches_without_kernel));
  }
  for (const std::string& note : summary.notes) {
    text += fmt::format("  note: {}\n", Printable(note));
  }
  for (const auto& [reason, count] : info.refused) {
    text += fmt::format("  note: {}: {}\n", Printable(reason), count);
  }
  // One call in 64 is timed; a short program's few samples make no estimate.
  text += fmt::format(
      "  cost of ranktap: {} CPU in its own threads, {} in the program's\n",
      FormatNs(summary.cost_cpu_ns),
      summary.cost_callback_ns > 0 ? FormatNs(summary.cost_callback_ns) : "not measured");
  if (summary.lost > 0) {
    text += fmt::format("  lost events: {} (ranktap report {} losses)\n",
                        FormatCount(static_cast<int64_t>(summary.lost)), path);
  }
  return text + fmt::format("  traces: {0} (ranktap report {0})\n", path);
}

}  // namespace ranktap::collector
