// Writes what every table and every exporter answers about one input, a file each; scripts/golden
// compares them, as text, with what they answered before.
//
// usage: answers [--claims] FOLDER INPUT...    the inputs are opened together, as `ranktap report
// INPUT...` does; with --claims tables/claims.json alone
//
// tables/NAME.json            ranktap report INPUT NAME --format json
// tables/claims.json       the checks that this input's claims do not pass, if any
// tables/NAME.hta.json        the same with --hta-compat, where that says something else
// exports/FORMAT.FILE         of the formats that make a folder
// exports/FORMAT.EXTENSION    ranktap export INPUT --format FORMAT, of all ranks or of the first
// exports/FORMAT.hta...       the same with --hta-compat, where that says something else
// .../...error                the sentence that came instead
//
// Stacks are left without names: those depend on the modules of the machine that reads the trace.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "collector/export/exporter.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/roofline/roofline_rows.h"
#include "collector/import/open_run.h"
#include "collector/report/claims/claim.h"
#include "collector/report/columns.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/report.h"
#include "collector/report/steps/verdict.h"
#include "collector/report/text/table_text.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

void WriteTable(const Report& report, const Run& run, const std::string& path) {
  const auto answer = [&](bool hta_compat) {
    if (report.compare != nullptr) return FormatJson(report(run, run), 0);
    return FormatJson(report(run, {.hta_compat = hta_compat}), 0);
  };
  const std::string plain = answer(false), hta = answer(true);
  Write(path + ".json", plain);
  if (hta != plain) Write(path + ".hta.json", hta);
}

// Every check of every claim, and the bounds that hold of all sentences: a row for each that fails.
struct Doubt {
  std::string claim, against, why;
};
const ColumnsOf<Doubt> kDoubtColumns = {
    {"claim", Unit::kText, "", [](const Doubt& doubt) { return doubt.claim; }},
    {"against", Unit::kText, "", [](const Doubt& doubt) { return doubt.against; }},
    {"why", Unit::kText, "", [](const Doubt& doubt) { return doubt.why; }},
};

void AddBrokenBounds(const Run& run, std::vector<Doubt>* doubts) {
  const Verdict verdict = Judge(run);
  for (const Loss& loss : verdict.losses) {
    if (loss.recoverable_ns <= loss.ns && loss.ns <= verdict.mean_step) continue;
    doubts->push_back({"bound", "verdict", loss.finding});
  }
  const Insights insights = FindInsights(run);
  for (const Insight& insight : insights.list) {
    const RankWaterfall& of = ComputeWaterfalls(run)[insight.trace];
    const int64_t saving = insight.saving_ns.value_or(0);
    // An overlap hides at most what computes.
    const bool is_overlap =
        insight.rule == "exposed-comm" || insight.rule == "comm-on-compute-stream";
    const int64_t most =
        is_overlap ? of.mean[static_cast<size_t>(Cause::kCompute)] : insight.lost_ns;
    if (saving <= most && saving <= insight.lost_ns && insight.lost_ns <= of.mean_step) continue;
    doubts->push_back({"bound", std::string(insight.rule), insight.finding});
  }
  for (const RooflineBy by : {RooflineBy::kOperator, RooflineBy::kKernel}) {
    for (const RooflineRow& row : SummarizeRoofline(run, {.by = by}).rows) {
      const bool is_within = row.saved_ns <= static_cast<double>(row.time_ns);
      if (!is_within) doubts->push_back({"bound", "roofline", row.name});
    }
  }
}

void WriteClaims(const Run& run, const std::string& path) {
  std::vector<Doubt> doubts;
  for (const CrossCheck& check : AllCrossChecks()) {
    std::string why = check.disagreement(run);
    if (why.empty()) continue;
    doubts.push_back(
        {std::string(NameOf(check.claim)), std::string(check.against), std::move(why)});
  }
  AddBrokenBounds(run, &doubts);
  if (doubts.empty()) return;
  Table table = TableOf("Checks that claims do not pass", kDoubtColumns, doubts);
  table.name = "claims";
  Write(path + ".json", FormatJson(table, 0));
}

// The file's name is in some of the files' text, so both variants are written under one.
std::string Exported(const Exporter& exporter, const Run& run, const ExportOptions& options,
                     const std::string& path) {
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) traces.push_back(&trace);
  if (!exporter.ranks_in_one_file) traces.resize(1);
  if (const auto failure = exporter.write(run, traces, options, path)) {
    fs::remove(path);
    return failure->message;
  }
  return "";
}

void WriteExport(const Exporter& exporter, const Run& run, const std::string& folder) {
  const std::string path = folder + "/" + std::string(exporter.name);
  if (exporter.makes_folder) {
    if (const std::string error = Exported(exporter, run, {}, path); !error.empty()) {
      Write(path + ".error", error + "\n");
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      fs::rename(entry.path(), path + "." + entry.path().filename().string());
    }
    fs::remove(path);
    return;
  }
  const std::string file = path + std::string(exporter.extension);
  const std::string hta_file = path + ".hta" + std::string(exporter.extension);
  if (const std::string error =
          Exported(exporter, run, {.hta_compat = true, .ranges_as_operators = true}, file);
      !error.empty()) {
    Write(path + ".error", error + "\n");
    return;
  }
  fs::rename(file, hta_file);
  if (const std::string error = Exported(exporter, run, {}, file); !error.empty()) {
    Write(path + ".error", error + "\n");
  }
  if (Read(file) == Read(hta_file)) fs::remove(hta_file);
}

int AnswerClaims(const std::string& folder, const std::vector<std::string>& inputs) {
  fs::create_directories(folder + "/tables");
  const Result<Run> run = OpenRun(inputs);
  if (!run) {
    std::fprintf(stderr, "%s\n", run.message().c_str());
    return 1;
  }
  WriteClaims(*run, folder + "/tables/claims");
  return 0;
}

int AnswerAll(const std::string& folder, const std::vector<std::string>& inputs) {
  const std::string tables = folder + "/tables", exports = folder + "/exports";
  fs::create_directories(tables);
  fs::create_directories(exports);
  const Result<Run> run = OpenRun(inputs);
  if (!run) {
    Write(tables + "/open.error", run.message() + "\n");
    return 0;
  }
  std::string problems;
  for (const std::string& problem : run->problems) problems += problem + "\n";
  if (!problems.empty()) Write(tables + "/open.problems", problems);
  for (const Report& report : AllReports()) {
    WriteTable(report, *run, tables + "/" + std::string(report.name));
    for (const std::string_view by : WaysOf(report)) {
      const Report* const way = ReportBy(report, by);
      if (way != nullptr) WriteTable(*way, *run, tables + "/" + std::string(way->name));
    }
  }
  WriteClaims(*run, tables + "/claims");
  for (const Exporter& exporter : AllExporters()) {
    if ((exporter.heeds & kDataSet) == 0) WriteExport(exporter, *run, exports);
  }
  return 0;
}

}  // namespace
}  // namespace ranktap::collector

int main(int argc, char** argv) {
  const bool claims = argc > 1 && std::string_view(argv[1]) == "--claims";
  if (argc < (claims ? 4 : 3)) {
    std::fprintf(stderr, "usage: %s [--claims] FOLDER INPUT...\n", argv[0]);
    return 2;
  }
  if (claims) return ranktap::collector::AnswerClaims(argv[2], {argv + 3, argv + argc});
  return ranktap::collector::AnswerAll(argv[1], {argv + 2, argv + argc});
}
