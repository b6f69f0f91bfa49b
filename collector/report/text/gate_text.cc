#include "collector/report/text/gate_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "collector/file/markup_text.h"
#include "collector/file/printable.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

// A name is data: it gets out of its cell by neither a bar, a mark nor a tag.
std::string MarkdownText(const std::string& text) {
  std::string escaped;
  for (const char letter : Printable(text)) {
    if (std::string_view("\\`*_{}[]<>|#@!&").find(letter) != std::string_view::npos) {
      escaped += '\\';
    }
    escaped += letter;
  }
  return escaped;
}

std::string GateAmount(const GateRow& row, const std::optional<double>& value) {
  if (!value) return "-";
  return row.limit.kind ? FormatNs(std::llround(*value))
                        : FormatBytes(static_cast<uint64_t>(std::llround(*value)));
}

std::string PercentOrNone(const std::optional<double>& percent) {
  return percent ? fmt::format("{:+.1f} %", *percent) : "-";
}

}  // namespace

std::string FormatGateMarkdown(const GateResult& gate) {
  std::string text = fmt::format("**ranktap diff: {}**\n\n{}\n\n", NameOf(gate.answer),
                                 MarkdownText(gate.sentence));
  text += "| limit | answer | before | after | change | at least | at most | spread |\n";
  text += "|---|---|--:|--:|--:|--:|--:|--:|\n";
  for (const GateRow& row : gate.rows) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", MarkdownText(row.limit.text),
                        NameOf(row.answer), GateAmount(row, row.before), GateAmount(row, row.after),
                        PercentOrNone(row.change), PercentOrNone(row.low), PercentOrNone(row.high),
                        row.spread ? FormatPercent(*row.spread) : "-");
  }
  text += "\n";
  for (const GateRow& row : gate.rows) {
    text += fmt::format("- {}: {}\n", MarkdownText(row.limit.text), MarkdownText(row.why));
  }
  for (const std::string& note : gate.notes) text += fmt::format("- {}\n", MarkdownText(note));
  return text;
}

std::string FormatGateJUnit(const GateResult& gate) {
  const auto count = [&gate](GateAnswer answer) {
    return std::ranges::count(gate.rows, answer, &GateRow::answer);
  };
  const std::string counts =
      fmt::format(R"(tests="{}" failures="{}" errors="{}")", gate.rows.size(),
                  count(GateAnswer::kRegression), count(GateAnswer::kCannotTell));
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ranktap diff\" {0}>\n"
      "  <testsuite name=\"ranktap diff\" {0}>\n",
      counts);
  for (const GateRow& row : gate.rows) {
    text += fmt::format("    <testcase name=\"{}\" classname=\"ranktap.diff\"",
                        MarkupText(row.limit.text));
    if (row.answer == GateAnswer::kNoRegression) {
      text += "/>\n";
      continue;
    }
    const char* const element = row.answer == GateAnswer::kRegression ? "failure" : "error";
    text +=
        fmt::format(">\n      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n    </testcase>\n",
                    element, NameOf(row.answer), MarkupText(row.why), MarkupText(gate.sentence));
  }
  text += fmt::format("    <system-out>{}</system-out>\n", MarkupText(gate.sentence));
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace ranktap::collector
