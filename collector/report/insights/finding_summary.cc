// The rows of four tables in one. It takes their sentences as they stand there, so that each is
// made once.
#include "collector/report/insights/finding_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/steps.h"
#include "collector/report/columns.h"
#include "collector/report/hang/hang_summary.h"
#include "collector/report/jobs.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

constexpr double kHighShare = 10, kMediumShare = 3;  // percent of the mean step

// One of the tables that findings are taken from. Columns by name; empty: it has none such.
struct FindingSource {
  std::string_view report, docs;
  std::string_view id, share, lost, saving, where, advice;
  // Its `id` goes into the command, which shows the table behind the finding.
  std::string_view command;
  Table (*table)(const Run& run, const ReportOptions& options);
};

constexpr FindingSource kFindingSources[] = {
    {.report = "verdict",
     .docs = "docs/commands/report.md",
     .id = "cause",
     .share = "share_percent",
     .lost = "loss_ns",
     .saving = "recoverable_ns",
     .command = "ranktap report RUN waterfall --where 'cause = {}' --by rank",
     .table = &TabulateVerdict},
    {.report = "insights",
     .docs = "docs/insights.md",
     .id = "rule",
     .share = "saving_percent",
     .lost = "lost_ns",
     .saving = "saving_ns",
     .where = "where",
     .advice = "advice",
     .command = "ranktap report RUN insights --where 'rule = {}'",
     .table = &TabulateInsights},
    {.report = "hang",
     .docs = "docs/hang.md",
     .id = "cause",
     .where = "line",
     .advice = "advice",
     .command = "ranktap report RUN hang --by rank",
     .table = &TabulateHang},
    {.report = "losses",
     .docs = "docs/reliability.md",
     .id = "reason",
     .command = "ranktap report RUN losses-by-writer",
     .table = &TabulateLosses},
};

struct FoundLine {
  const FindingSource* source = nullptr;
  std::string kind, finding, where, advice;
  std::optional<int64_t> rank, first_step, last_step, lost_ns, saving_ns;
  std::optional<double> share;
};

// A cell of a row, by the name of its column.
class NamedCells {
 public:
  NamedCells(const Table& table, size_t row) : table_(table), row_(row) {}
  const Cell& operator[](std::string_view name) const {
    static const Cell kNone;
    const auto column = std::ranges::find(table_.columns, name, &TableColumn::name);
    return column == table_.columns.end()
               ? kNone
               : table_.rows[row_][static_cast<size_t>(column - table_.columns.begin())];
  }
  std::string Text(std::string_view name) const {
    const auto* const text = std::get_if<std::string>(&(*this)[name]);
    return text == nullptr ? "" : *text;
  }
  std::optional<int64_t> Number(std::string_view name) const {
    const auto* const number = std::get_if<int64_t>(&(*this)[name]);
    return number == nullptr ? std::nullopt : std::optional(*number);
  }
  std::optional<double> Real(std::string_view name) const {
    const auto* const real = std::get_if<double>(&(*this)[name]);
    return real == nullptr ? std::nullopt : std::optional(*real);
  }

 private:
  const Table& table_;
  const size_t row_;
};

// The steps that means are of, on the rank: of a row without a rank, on the first.
void AddWindow(const Run& run, FoundLine* line) {
  for (const Trace& trace : run.traces) {
    if (line->rank && trace.info.rank != static_cast<uint32_t>(*line->rank)) continue;
    for (const Step& step : DetectSteps(trace).list) {
      if (step.warm_up) continue;
      if (!line->first_step) line->first_step = step.number;
      line->last_step = step.number;
    }
    return;
  }
}

void AddFindings(const Run& run, const FindingSource& source, std::vector<FoundLine>* lines) {
  const Table table = source.table(run, {});
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const NamedCells cells(table, row);
    FoundLine line{.source = &source,
                   .kind = cells.Text(source.id),
                   .finding = cells.Text("finding"),
                   .where = cells.Text(source.where),
                   .advice = cells.Text(source.advice),
                   .rank = cells.Number("rank"),
                   .lost_ns = cells.Number(source.lost),
                   .saving_ns = cells.Number(source.saving),
                   .share = cells.Real(source.share)};
    if (line.kind.empty()) continue;
    if (source.report == "losses") {
      line.finding = fmt::format("{} events are missing: {}", cells.Number("events").value_or(0),
                                 cells.Text("meaning"));
    }
    // A hang names its ranks in text, and its window is not one of steps.
    if (source.report != "hang") AddWindow(run, &line);
    lines->push_back(std::move(line));
  }
}

// "data loading" -> "data-loading"
std::string Slug(std::string text) {
  for (char& letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return text;
}

std::string SeverityOf(const FoundLine& line) {
  if (line.source->report == "hang") return "high";
  if (line.source->report == "losses") return "medium";
  if (!line.share) return "medium";
  return *line.share >= kHighShare ? "high" : *line.share >= kMediumShare ? "medium" : "low";
}

struct SourceLine {
  std::string file;
  int64_t line = 0;
};

// "aten::item at train.py(31): step", "/job/train.py:41": the first file with a line.
std::optional<SourceLine> SourceIn(std::string_view where) {
  for (size_t at = where.find(".py"); at != std::string_view::npos;
       at = where.find(".py", at + 1)) {
    const size_t begin = where.substr(0, at).find_last_of(" (,;");
    const std::string_view rest = where.substr(at + 3);
    if (rest.size() < 2 || (rest[0] != ':' && rest[0] != '(')) continue;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
    if (error != std::errc()) continue;
    const size_t first = begin == std::string_view::npos ? 0 : begin + 1;
    return SourceLine{.file = std::string(where.substr(first, at + 3 - first)), .line = number};
  }
  return std::nullopt;
}

Cell FileCell(const FoundLine& line) {
  const std::optional<SourceLine> source = SourceIn(line.where);
  return source ? Cell(source->file) : Cell();
}
Cell LineCell(const FoundLine& line) {
  const std::optional<SourceLine> source = SourceIn(line.where);
  return source ? Cell(source->line) : Cell();
}
template <typename T>
Cell OptionalCell(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}
Cell WordsCell(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

std::string CommandOf(const FoundLine& line) {
  const std::string_view command = line.source->command;
  const size_t hole = command.find("{}");
  if (hole == std::string_view::npos) return std::string(command);
  return std::string(command.substr(0, hole)) + line.kind + std::string(command.substr(hole + 2));
}

const ColumnsOf<FoundLine> kFoundColumns = {
    {"id", Unit::kText, "The report and the kind of the finding; it stays between versions.",
     [](const FoundLine& line) {
       return fmt::format("{}.{}", line.source->report, Slug(line.kind));
     }},
    {"severity", Unit::kText, "high from 10 % of a step, medium from 3 %, else low.",
     [](const FoundLine& line) { return SeverityOf(line); }},
    {"rank", Unit::kCount, "The rank that it is about.",
     [](const FoundLine& line) { return OptionalCell(line.rank); }},
    {"first_step", Unit::kCount, "The first step that was looked at.",
     [](const FoundLine& line) { return OptionalCell(line.first_step); }, Shown::kDetail},
    {"last_step", Unit::kCount, "The last step that was looked at.",
     [](const FoundLine& line) { return OptionalCell(line.last_step); }, Shown::kDetail},
    {"lost_ns", Unit::kNs, "The time a step that it costs.",
     [](const FoundLine& line) { return OptionalCell(line.lost_ns); }, Shown::kDetail},
    {"saving_ns", Unit::kNs, "The time a step that the job can save.",
     [](const FoundLine& line) { return OptionalCell(line.saving_ns); }},
    {"share_percent", Unit::kPercent, "The loss, or of insights the saving, as a share of a step.",
     [](const FoundLine& line) { return OptionalCell(line.share); }},
    {"file", Unit::kText, "The file of the program, where it is known.",
     [](const FoundLine& line) { return FileCell(line); }, Shown::kDetail},
    {"line", Unit::kCount, "The line in it.", [](const FoundLine& line) { return LineCell(line); },
     Shown::kDetail},
    {"where", Unit::kText, "The operator, line or place.",
     [](const FoundLine& line) { return WordsCell(line.where); }, Shown::kDetail},
    {"finding", Unit::kText, "The sentence of the report.",
     [](const FoundLine& line) { return line.finding; }, Shown::kProse},
    {"advice", Unit::kText, "What to do about it.",
     [](const FoundLine& line) { return WordsCell(line.advice); }, Shown::kProse},
    {"command", Unit::kText, "The command that shows the figures behind it.",
     [](const FoundLine& line) { return CommandOf(line); }},
    {"docs", Unit::kText, "The page that explains it.",
     [](const FoundLine& line) { return std::string(line.source->docs); }, Shown::kDetail},
};

}  // namespace

Table TabulateFindings(const Run& run, const ReportOptions&) {
  std::vector<FoundLine> lines;
  if (DescribeJobs(run).empty()) {
    for (const FindingSource& source : kFindingSources) AddFindings(run, source, &lines);
  }
  Table table = TableOf(TabulateVerdict(run).title, kFoundColumns, lines);
  table.notes.push_back("verdict, insights, hang and losses have these rows, with more figures");
  return table;
}

}  // namespace ranktap::collector
