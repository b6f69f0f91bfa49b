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
constexpr size_t kMostLines = 24;
constexpr size_t kMostNotes = 2;

Cell Or(const std::optional<uint32_t>& value) {
  return value ? Cell(static_cast<int64_t>(*value)) : Cell();
}

std::string FirstLine(const RunSummary& summary, const RunInfo& info) {
  const size_t traces = summary.ranks.size();
  std::string line = "  " + Counted(traces, "trace");
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
                          {"loaded_by", Unit::kText, Shown::kDetail}}};
  for (const RankRow& row : summary.ranks) {
    std::string status(NameOf(row.info.status));
    if (!row.info.detail.empty() && row.info.status != TraceStatus::kClosed) {
      status += ": " + row.info.detail;
    }
    table.rows.push_back({Or(row.info.rank), row.device, row.busy ? Cell(*row.busy) : Cell(),
                          row.kernels, row.kernel_ns, row.copies, row.api_ns, row.ranges,
                          static_cast<int64_t>(row.lost), std::move(status), row.info.file,
                          row.info.loaded_by});
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
    // Those that a killed process left open are not done.
    table.rows.push_back(
        {name, row.time.count - row.unfinished, row.time.total_ns, row.gpu_ns, row.time.mean_ns()});
  }
  return table;
}

// Without the line that a report has as its title.
std::string Body(const Table& table, size_t width, size_t limit) {
  return table.rows.empty() ? "" : FormatText(table, width, limit);
}

std::string VerdictText(const std::string& sentence, size_t width) {
  return FormatText({.name = "", .title = "ranktap: " + sentence, .columns = {}}, width, 0);
}

// One line.
std::string Note(const std::string& note, size_t width) {
  std::string line = fmt::format("  note: {}", Printable(note));
  if (line.size() > width) line = line.substr(0, width - 3) + "...";
  return line + "\n";
}

std::string Notes(const RunSummary& summary, const RunInfo& info, size_t width) {
  std::vector<std::string> notes = summary.notes;
  if (summary.launches_without_kernel > 0) {
    notes.push_back(fmt::format("launches without a kernel record: {}",
                                FormatCount(summary.launches_without_kernel)));
  }
  for (const auto& [reason, count] : info.refused) {
    notes.push_back(fmt::format("{}: {}", reason, count));
  }
  std::string text;
  for (size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i) text += Note(notes[i], width);
  if (notes.size() <= kMostNotes) return text;
  return text + fmt::format("  ... and {} more notes\n", notes.size() - kMostNotes);
}

// The lines after the tables; its last line is the command to go on with.
std::string Ending(const RunSummary& summary, const RunInfo& info, const std::string& path,
                   size_t width) {
  std::string text = Notes(summary, info, width);
  // One call in 64 is timed; a short program's few samples make no estimate.
  text += fmt::format(
      "  cost of ranktap: {} CPU in its own threads; in the program's threads {}\n",
      FormatNs(summary.cost_cpu_ns),
      summary.cost_callback_ns > 0 ? FormatNs(summary.cost_callback_ns) : "it was not measured");
  if (summary.lost > 0) {
    text += fmt::format("  lost events: {} (ranktap report {} losses)\n",
                        FormatCount(static_cast<int64_t>(summary.lost)), path);
  }
  return text + fmt::format("  next: ranktap report {}\n", path);
}

std::string Tables(const RunSummary& summary, size_t width, size_t ranks, size_t rows) {
  std::string text = Body(RankTable(summary), width, ranks);
  if (rows == 0) return text;
  return text + Body(KernelTable(summary), width, rows) + Body(RangeTable(summary), width, rows);
}

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

std::string FormatSummary(const RunSummary& summary, const RunInfo& info, const std::string& path,
                          size_t width) {
  if (width == 0) width = kUsualWidth;
  const std::string head = VerdictText(summary.verdict, width) + FirstLine(summary, info);
  const std::string end = Ending(summary, info, path, width);
  size_t ranks = std::max<size_t>(1, std::min<size_t>(summary.ranks.size(), 8)), rows = kTopRows;
  std::string tables = Tables(summary, width, ranks, rows);
  while (Lines(head) + Lines(tables) + Lines(end) > kMostLines && (rows > 0 || ranks > 1)) {
    if (rows > 1 || ranks == 1)
      --rows;
    else if (ranks > 1)
      --ranks;
    tables = Tables(summary, width, ranks, rows);
  }
  return head + tables + end;
}

}  // namespace ranktap::collector
