#include "collector/report/text/finding_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "collector/report/human_units.h"
#include "collector/report/notes.h"
#include "collector/report/text/paragraph.h"

namespace ranktap::collector {
namespace {

size_t ColumnOf(const Table& table, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(table.columns, name, &TableColumn::name) -
                             table.columns.begin());
}

bool Has(const Table& table, std::string_view name) {
  return ColumnOf(table, name) < table.columns.size();
}

// Of one row; empty where the table has no such column, or the row nothing there.
class Finding {
 public:
  Finding(const Table& table, size_t row, TimeUnit time_unit)
      : table_(table), row_(table.rows[row]), time_unit_(time_unit) {}

  std::string Text(std::string_view name) const {
    const size_t column = ColumnOf(table_, name);
    if (column >= row_.size() || std::holds_alternative<std::monostate>(row_[column])) return "";
    return FormatCellOf(table_.columns[column], row_[column], time_unit_);
  }

  // "saves at most 6.100 ms (17.3 %)"
  std::string Amount() const {
    if (const std::string saving = Text("saving_ns"); !saving.empty()) {
      const std::string share = Text("saving_percent");
      return fmt::format("saves at most {}{}", saving,
                         share.empty() ? "" : fmt::format(" ({})", share));
    }
    const std::string lost = Text("lost_ns");
    return lost.empty() || lost.starts_with("0 ") ? "" : fmt::format("costs {}", lost);
  }

  // "rank 3 and 2 more, device 1"
  std::string Who() const {
    std::string who;
    if (const std::string rank = Text("rank"); !rank.empty()) who = "rank " + rank;
    const auto* const ranks = Number("ranks");
    if (ranks != nullptr && *ranks > 1) {
      who += who.empty() ? Counted(static_cast<size_t>(*ranks), "rank")
                         : fmt::format(" and {} more", *ranks - 1);
    }
    if (const std::string device = Text("device"); !device.empty()) {
      who += (who.empty() ? "" : ", ") + ("device " + device);
    }
    return who;
  }

 private:
  const int64_t* Number(std::string_view name) const {
    const size_t column = ColumnOf(table_, name);
    return column < row_.size() ? std::get_if<int64_t>(&row_[column]) : nullptr;
  }

  const Table& table_;
  const std::vector<Cell>& row_;
  const TimeUnit time_unit_;
};

}  // namespace

bool AreFindings(const Table& table) {
  return Has(table, "rule") && Has(table, "finding") && Has(table, "advice");
}

std::string FormatFinding(const Table& table, size_t row, size_t width, TimeUnit time_unit) {
  const Finding finding(table, row, time_unit);
  std::string head = finding.Text("rule"), separator = ": ";
  for (const std::string& part : {finding.Amount(), finding.Who()}) {
    if (part.empty()) continue;
    head += std::exchange(separator, ", ") + part;
  }
  const std::string number = fmt::format("  {}. ", row + 1), indent(number.size(), ' ');
  const auto paragraph = [&](const std::string& before, std::string_view name) {
    const std::string text = finding.Text(name);
    return text.empty() ? "" : Paragraph(before, text, width, LongWord::kWhole);
  };
  std::string text = (row == 0 ? "" : "\n") + Paragraph(number, head, width);
  if (const std::string where = finding.Text("where"); !where.empty()) {
    text += indent + "at " + where + "\n";
  }
  text += paragraph(indent, "finding");
  text += paragraph(indent + "-> ", "advice");
  if (const std::string command = finding.Text("command"); !command.empty()) {
    text += indent + command + "\n";
  }
  return text;
}

std::vector<std::string> WithoutUncheckedRules(const std::vector<std::string>& notes) {
  std::vector<std::string> kept;
  size_t rules = 0, most = 0, at = 0;
  std::string why;
  for (const std::string& note : notes) {
    if (!note.starts_with(kNotChecked)) {
      kept.push_back(note);
      continue;
    }
    if (rules == 0) at = kept.size();
    const std::string names = note.substr(std::min(note.rfind(": "), note.size()));
    const auto named = static_cast<size_t>(std::ranges::count(names, ',')) + 1;
    rules += named;
    if (named <= most) continue;
    most = named;
    why = note.substr(kNotChecked.size(), note.rfind(": ") - kNotChecked.size());
  }
  if (rules == 0) return kept;
  constexpr size_t kShortReason = 32;  // fits into a line of 80
  const bool is_told = most * 2 > rules && why.size() <= kShortReason;
  kept.insert(kept.begin() + static_cast<ptrdiff_t>(at),
              fmt::format("{} not checked{}; --verbose lists {}", Counted(rules, "rule"),
                          is_told ? ": " + why : "", rules == 1 ? "it" : "them"));
  return kept;
}

}  // namespace ranktap::collector
