// `ranktap baseline tag NAME RUN... | list | rm NAME`: what runs took, kept for later comparisons.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "collector/cli/command.h"
#include "collector/cli/compared_runs.h"
#include "collector/report/columns.h"
#include "collector/report/gate/welch.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/report_file.h"
#include "collector/terminal/table_view.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

bool IsBaselineName(const std::string& name) {
  const auto is_plain = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '_' || letter == '-';
  };
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, is_plain);
}

int TagRuns(const std::string& path, const std::string& name,
            const std::vector<std::string>& runs) {
  std::optional<std::vector<RunFigures>> figures = FiguresAt(runs);
  if (!figures) return kFailure;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string text = WriteBaseline({.name = name, .runs = std::move(*figures)});
  return PrintInto(path, [&text] {
    const bool all = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return all && std::fflush(stdout) == 0 ? kSuccess : kFailure;
  });
}

struct BaselineRow {
  std::string name;
  size_t runs = 0;
  double step_ns = 0;
  std::optional<double> spread;  // percent
  std::string devices, command;
};

BaselineRow DescribeBaseline(const std::string& name, const Baseline& baseline) {
  BaselineRow row{.name = name, .runs = baseline.runs.size()};
  std::vector<double> logs;
  for (const RunFigures& run : baseline.runs) {
    const auto step = run.by_key.find({SampleKind::kStep, "step"});
    if (step == run.by_key.end() || step->second.ns <= 0) continue;
    logs.push_back(std::log(step->second.ns));
    row.step_ns += step->second.ns / static_cast<double>(baseline.runs.size());
  }
  if (const auto spread = CompareMeans(logs, {0})) row.spread = 100 * std::expm1(spread->spread);
  const auto text = [](const std::map<std::string, std::string>& of, const std::string& key) {
    const auto found = of.find(key);
    return found == of.end() ? std::string() : found->second;
  };
  if (!baseline.runs.empty()) {
    row.devices = text(baseline.runs[0].must_agree, "devices");
    row.command = text(baseline.runs[0].settings, "command");
  }
  return row;
}

const ColumnsOf<BaselineRow> kBaselineColumns = {
    {"name", Unit::kText, "The name of the baseline.",
     [](const BaselineRow& row) { return row.name; }},
    {"runs", Unit::kCount, "The runs in it.",
     [](const BaselineRow& row) { return static_cast<int64_t>(row.runs); }},
    {"step_ns", Unit::kNs, "The time a step, the mean of its runs.",
     [](const BaselineRow& row) { return std::llround(row.step_ns); }},
    {"spread_percent", Unit::kPercent, "The standard deviation from one run to the next.",
     [](const BaselineRow& row) { return row.spread ? Cell(*row.spread) : Cell(); }},
    {"devices", Unit::kText, "The devices of a run.",
     [](const BaselineRow& row) { return row.devices; }},
    {"command", Unit::kText, "The command of the first run.",
     [](const BaselineRow& row) { return row.command; }},
};

int ListBaselines(const std::string& folder, const std::string& format) {
  std::vector<BaselineRow> rows;
  std::error_code error;
  for (const auto& [name, baseline] : BaselinesIn(folder, &error)) {
    rows.push_back(DescribeBaseline(name, baseline));
  }
  if (error) return Complained(fmt::format("{}: {}", folder, error.message()), kFailure);
  TableView view;
  view.format = *FormatNamed(format);
  Table table = TableOf("The baselines in " + folder, kBaselineColumns, rows);
  table.name = "baselines";
  Print(table, view, 0);
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace

int BaselineCommand(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  std::string folder = kBaselinesFolder, format = "text";
  Arguments app(
      "Keeps what runs took, and how much they differ, as a file that `ranktap diff` takes for\n"
      "these runs. The runs may be removed then.",
      "ranktap baseline");
  app.SetUsage(
      "ranktap baseline tag NAME RUN... [--folder DIR]\n"
      "       ranktap baseline list [--folder DIR] [--format F]\n"
      "       ranktap baseline rm NAME [--folder DIR]");
  app.Add("WORDS", &words, "tag NAME RUN..., list, or rm NAME").Required();
  app.Add("--folder", &folder, "the folder with a file NAME.json for each").ShowsDefault();
  app.Add("--format", &format, "of list: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const std::string& verb = words[0];
  if (verb == "list" && words.size() == 1) return ListBaselines(folder, format);
  const bool is_tag = verb == "tag" && words.size() >= 3;
  if (!is_tag && !(verb == "rm" && words.size() == 2)) {
    return Complained("baseline wants tag NAME RUN..., list, or rm NAME", kWrongUsage);
  }
  if (!IsBaselineName(words[1])) {
    return Complained(
        fmt::format("{}: a baseline's name is letters, digits, '.', '_' and '-'", words[1]),
        kWrongUsage);
  }
  const std::string path = fmt::format("{}/{}.json", folder, words[1]);
  if (is_tag) return TagRuns(path, words[1], {words.begin() + 2, words.end()});
  std::error_code error;
  if (fs::remove(path, error)) return kSuccess;
  return Complained(fmt::format("{}: {}", path, error ? error.message() : "there is none"),
                    kFailure);
}

}  // namespace ranktap::collector
