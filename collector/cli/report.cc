// `ranktap report RUN [NAME]`: one analysis as text, JSON or CSV.
#include <unistd.h>

#include <cstdio>

#include "collector/analysis/analysis.h"
#include "collector/cli/arguments.h"
#include "collector/cli/command.h"
#include "collector/cli/table_text.h"
#include "collector/cli/terminal.h"
#include "collector/import/open_run.h"

namespace ranktap::collector {
namespace {

std::string AnalysesHelp() {
  std::string text = "Analyses:\n";
  for (const Analysis& analysis : AllAnalyses()) {
    text += "  " + std::string(analysis.name) + std::string(10 - analysis.name.size(), ' ') +
            std::string(analysis.question) + "\n";
  }
  return text;
}

void Print(const Table& table, Format format, size_t limit) {
  std::string text;
  switch (format) {
    case Format::kText:
      text = FormatText(table, OutputWidth(STDOUT_FILENO), limit);
      break;
    case Format::kJson:
      text = FormatJson(table, limit);
      break;
    case Format::kCsv:
      text = FormatCsv(table, limit);
      for (const std::string& note : table.notes) Complain(Printable(note));
      break;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

int ReportCommand(const std::vector<std::string>& arguments) {
  std::string path, name = "ranks", format_name = "text";
  size_t limit = 0;
  CLI::App app("Prints one analysis of a run.", "ranktap report");
  app.add_option("RUN", path, "a run directory, or one .trace file")->required();
  app.add_option("NAME", name, "which analysis")->capture_default_str();
  app.add_option("--format", format_name, "text, json or csv")->capture_default_str();
  app.add_option("--limit", limit, "at most this many rows; 0: all")->capture_default_str();
  app.footer(AnalysesHelp());
  if (const auto status = ParseArguments(&app, arguments)) return *status;
  const std::optional<Format> format = FormatNamed(format_name);
  const Analysis* const analysis = FindAnalysis(name);
  if (!format || analysis == nullptr) {
    Complain(format ? "no analysis '" + name + "'" : "no format '" + format_name + "'");
    std::fprintf(stderr, "try: ranktap report --help\n");
    return kWrongUsage;
  }
  const Result<Run> run = OpenRun({path});
  if (!run) {
    Complain(run.message());
    return kFailure;
  }
  Print(analysis->run(*run), *format, limit);
  if (std::fflush(stdout) != 0) {
    Complain("could not write the report");
    return kFailure;
  }
  return kSuccess;
}

}  // namespace ranktap::collector
