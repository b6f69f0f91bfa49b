// `ranktap report RUN [NAME...]`: reports as text, JSON, CSV, HTML or Parquet; without a name the
// verdict and the summary.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <set>

#include "collector/cli/command.h"
#include "collector/cli/hang_notes_table.h"
#include "collector/cli/known_words.h"
#include "collector/cli/large_run.h"
#include "collector/cli/page.h"
#include "collector/cli/report_options.h"
#include "collector/cli/report_summary.h"
#include "collector/cli/report_words.h"
#include "collector/cli/run_selection.h"
#include "collector/cli/untraced_run.h"
#include "collector/import/open_run.h"
#include "collector/report/framework/ignored_modules.h"
#include "collector/report/jobs.h"
#include "collector/report/report.h"
#include "collector/report/run_filter.h"
#include "collector/report/run_in_commands.h"
#include "collector/report/text/deepspeed_text.h"
#include "collector/symbols/resolve_stacks.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/later_runs.h"
#include "collector/terminal/pager.h"
#include "collector/terminal/progress_line.h"
#include "collector/terminal/report_data_set.h"
#include "collector/terminal/report_file.h"
#include "collector/terminal/report_help.h"
#include "collector/terminal/table_view.h"
#include "collector/trace/at_once.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kSummaryRows = 10;

struct Request {
  std::vector<std::string> paths;
  std::vector<const Report*> reports;
  ReportOptions options;
  TableView view;
  RunSelection selection;
  std::string kernel_names;
  std::vector<std::string> symbols;
  std::optional<DeepSpeedOptions> deepspeed;  // --format deepspeed...
  std::optional<int64_t> profile_step;
  std::vector<std::string> ignored_modules;
  ReportDataSet data_set;  // --format parquet
};

// The last words are reports, even if there are files of these names (./ranks is one of those); the
// first word is none.
void SplitWords(std::vector<std::string> words, Request* request) {
  while (words.size() > 1 && FindReport(words.back()) != nullptr) {
    request->reports.insert(request->reports.begin(), FindReport(words.back(), &request->options));
    words.pop_back();
  }
  if (const auto names = KernelNamesNamed(request->kernel_names)) {
    request->options.kernel_names = *names;
  }
  request->paths = std::move(words);
}

void PrintTable(const Table& table, const Request& request) {
  const bool is_one_of_several = request.reports.size() > 1;
  const bool is_summary = is_one_of_several && request.view.format == Format::kText;
  Print(table, request.view,
        static_cast<size_t>(request.view.limit.value_or(is_summary ? kSummaryRows : 0)));
  if (is_one_of_several && request.view.format == Format::kText) std::fputs("\n", stdout);
}

// Opens the run and leaves what the filters ask for. kSuccess, or the exit status; said why.
int Open(const Request& request, const std::vector<std::string>& paths, Run* run,
         std::vector<std::string>* notes) {
  const RunRoom room = RoomFor(paths, request.selection, !request.reports.empty(), FreeMemory());
  if (!room.sentence.empty()) Complain(Printable(room.sentence));
  if (!room.fits) return kFailure;
  Result<Run> opened = [&] {
    const ProgressLine progress;
    return OpenRun(paths, room.wants, DropsUnread(request.options, request.selection));
  }();
  if (!opened) return Complained(opened.message(), kFailure);
  for (const std::string& problem : opened->problems) Complain(Printable(problem));
  *run = std::move(*opened);
  if (!SelectOfRun(request.selection, run, notes)) return kWrongUsage;
  DropUnread(request.options, run);
  return kSuccess;
}

int Finish() {
  if (std::fflush(stdout) == 0) return kSuccess;
  Complain("could not write the report");
  return kFailure;
}

int PrintPage(const std::string& page) {
  std::fwrite(page.data(), 1, page.size(), stdout);
  return Finish();
}

int PrintDeepSpeed(const Request& request, const Run& run) {
  Result<ModelProfile> profile = ProfileModel(run, request.options, request.profile_step);
  if (!profile) return Complained(profile.message(), kFailure);
  if (const auto failure = IgnoreModules(request.ignored_modules, &*profile)) {
    return Complained(failure->message, kFailure);
  }
  return PrintPage(FormatDeepSpeed(*profile, *request.deepspeed));
}

int Compare(const Request& request) {
  if (request.paths.size() != 2) {
    return Complained("diff wants two runs: ranktap report RUN1 RUN2 diff", kWrongUsage);
  }
  Run runs[2];
  std::vector<std::string> notes;
  for (size_t i = 0; i < 2; ++i) {
    const int status = Open(request, {request.paths[i]}, &runs[i], &notes);
    if (status != kSuccess) return status;
  }
  if (request.view.format == Format::kHtml) {
    return PrintPage(MakeDiffPage(runs[0], runs[1], notes));
  }
  Table table = (*request.reports[0])(runs[0], runs[1]);
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  if (!Select(request.view, &table)) return kWrongUsage;
  PrintTable(table, request);
  return Finish();
}

// Leaves the rows and columns that were asked for; false, after a complaint: there is no such
// column.
bool Finish(const Report& report, const Request& request, const Run& run,
            const std::vector<std::string>& notes, Table* table) {
  if (report.name == "hang" && request.options.by.empty()) AddHangNotes(run.path, table);
  table->notes.insert(table->notes.end(), notes.begin(), notes.end());
  NameTheRun(request.paths, table);
  NameTheRanks(request.selection, table);
  return Select(request.view, table);
}

int WriteDataSet(const Request& request, const std::vector<std::string>& notes, Run* run) {
  ResolveStacks(request.symbols, run);
  const auto make = [&](const Report& report) { return report(*run, request.options); };
  const auto finish = [&](const Report& report, Table* table) {
    if (!Finish(report, request, *run, notes, table)) return false;
    const auto limit = static_cast<size_t>(request.view.limit.value_or(0));
    if (limit != 0 && table->rows.size() > limit) table->rows.resize(limit);
    return true;
  };
  return WriteReports(request.data_set, run->path, request.reports, make, finish);
}

int PrintReports(Request request) {
  request.paths = LastRunsIn(request.paths);
  if (!request.reports.empty() && request.reports[0]->compare != nullptr) {
    return Compare(request);
  }
  if (const std::optional<Table> nothing = OfUntracedRun(request.paths)) {
    PrintTable(*nothing, request);
    return Finish();
  }
  // Never freed piece by piece, which takes 0.4 s of 64 ranks.
  static auto& runs = *new std::deque<Run>;
  Run& run = runs.emplace_back();
  std::vector<std::string> notes;
  if (const int status = Open(request, request.paths, &run, &notes); status != kSuccess) {
    return status;
  }
  if (request.data_set.wanted) return WriteDataSet(request, notes, &run);
  if (request.reports.empty() && request.view.format == Format::kHtml) {
    const ProgressLine progress;
    return PrintPage(MakePage(request.options, request.symbols, notes, request.paths, &run));
  }
  // The verdict comes first, and has all processors to itself.
  const size_t alone = request.reports.empty() ? 1 : 0;
  if (request.reports.empty()) request.reports = SummaryOf(run);
  if (request.deepspeed) return PrintDeepSpeed(request, run);
  const auto needs_symbols = [](const Report* report) { return report->needs_symbols; };
  if (std::any_of(request.reports.begin(), request.reports.end(), needs_symbols)) {
    const ProgressLine progress;
    ResolveStacks(request.symbols, &run);
  }
  std::optional<Pager> pager;
  if (request.view.format == Format::kText) pager.emplace();
  // Several tables of JSON are one document, too.
  const bool is_list = request.view.format == Format::kJson && request.reports.size() > 1;
  const char* before = is_list ? "[\n" : "";
  bool is_known = true;
  const auto make = [&](size_t i) { return (*request.reports[i])(run, request.options); };
  const auto print = [&](size_t i, Table table) {
    is_known = Finish(*request.reports[i], request, run, notes, &table);
    if (!is_known) return false;
    std::fputs(std::exchange(before, is_list ? "," : ""), stdout);
    PrintTable(table, request);
    return std::fflush(stdout) == 0;  // a table at a time
  };
  if (alone == 0 || print(0, make(0))) {
    MakeAtOnce(
        request.reports.size() - alone, [&](size_t i) { return make(i + alone); },
        [&](size_t i, Table table) { return print(i + alone, std::move(table)); });
  }
  if (!is_known) return kWrongUsage;
  if (is_list) std::fputs("]\n", stdout);
  const int status = Finish();
  ReturnColumns(&run);
  return status;
}

// False: it is none of theirs.
bool SetDeepSpeedStyle(std::string_view format, DeepSpeedOptions options, Request* request) {
  constexpr std::pair<std::string_view, DeepSpeedStyle> kStyles[] = {
      {"deepspeed", DeepSpeedStyle::kCurrent},
      {"deepspeed-old", DeepSpeedStyle::kOld},
      {"deepspeed-memory", DeepSpeedStyle::kMemory}};
  for (const auto& [name, style] : kStyles) {
    if (format != name) continue;
    options.style = style;
    request->deepspeed = options;
  }
  return request->deepspeed.has_value();
}

void AddDeepSpeedOptions(Arguments* app, DeepSpeedOptions* options, Request* request) {
  constexpr const char* kGroup = "modules --format deepspeed, deepspeed-old, deepspeed-memory";
  app->Add("--profile-step", &request->profile_step, "latencies of this step alone").Group(kGroup);
  app->Add("--ignore-modules", &request->ignored_modules,
           "types of modules whose arithmetic counts for the module around them: Linear,Dropout")
      .CommaSeparated()
      .Group(kGroup);
  app->Add("--module-depth", &options->module_depth,
           "how many depths the aggregated profile shows; -1: all but the deepest")
      .Group(kGroup)
      .ShowsDefault();
  app->Add("--top-modules", &options->top_modules, "classes of modules at each depth")
      .Group(kGroup)
      .ShowsDefault();
  app->AddFlag("--detailed,!--no-detailed", &options->detailed, "each module's profile")
      .Group(kGroup);
  app->Add("--recompute-fwd-factor", &options->recompute_fwd_factor,
           "added to the estimate that a backward is twice a forward")
      .Group(kGroup)
      .ShowsDefault();
}

// "patterns: HELP", from the registry.
std::string OfReports(uint32_t option, const std::string& help) {
  return fmt::format("{}: {}", NamesThatHeed(option), help);
}

void AddRunOptions(Arguments* app, Request* request) {
  AddSelectionOptions(app, &request->selection);
  app->Add("--symbols", &request->symbols,
           "stacks: a folder with modules or debug information; may be repeated")
      .Repeatable();
}

void AddReportOptions(Arguments* app, Request* request) {
  ReportOptions* const options = &request->options;
  app->Add("--by", &options->by, "what shares a row: " + WaysHelp());
  app->AddFlag("--hta-compat", &options->hta_compat,
               OfReports(kHtaCompat, "select and define as Holistic Trace Analysis does"));
  app->AddFlag("--group-by-shape", &options->by_shape, OfReports(kByShape, "by input shapes too"));
  app->Add("--group-by-stack", &options->by_stack,
           OfReports(kByStack, "by this many frames of the Python stack too"));
  app->AddFlag("--group-by-module", &options->by_module,
               OfReports(kByModule, "by the torch.nn.Module whose forward they belong to too"));
  app->AddFlag("--top-level", &options->top_level,
               OfReports(kTopLevel,
                         "only what no other operator called, as torch's "
                         "table(top_level_events_only=True)"));
  app->AddFlag("--group-by-grid", &options->by_grid,
               OfReports(kByGrid, "by the launch's grid and block too"));
  app->Add(
         "--kernel-names", &request->kernel_names,
         OfReports(
             kKernelNames,
             "how kernels are named, and so which share a row: demangled (default), base, mangled"))
      .OneOf({"demangled", "base", "mangled"});
  app->Add("--operator", &options->operator_name,
           OfReports(kOperator,
                     "only the shallowest operators, or the ranges and kernels, whose name "
                     "contains this"));
  app->Add("--min-length", &options->shortest_pattern,
           OfReports(kMinLength, "fewest kernels in a sequence"))
      .ShowsDefault();
  app->Add("--sample-rate", &options->sample_rate,
           OfReports(kSampleRate, "take a row after each N operators (default: at 400 moments)"))
      .Positive();
}

// False, after a complaint: an option is given that none of the reports heeds.
bool OptionsAreHeeded(const Request& request) {
  uint32_t heeds = 0;
  for (const Report* const report : request.reports) heeds |= report->heeds;
  if (request.reports.empty()) {
    for (const Report* const report : UsualSummary()) heeds |= report->heeds;
  }
  for (const ReportOption& option : kReportOptions) {
    if ((heeds & option.bit) != 0 || !option.given(request.options)) continue;
    Complain(fmt::format(
        "{} is for {}, not for {}", option.name, NamesThatHeed(option.bit),
        request.reports.empty() ? "the summary" : std::string(request.reports[0]->name)));
    return false;
  }
  return true;
}

// False, after a complaint: there is no such format or report.
bool SetFormat(std::string name, const DeepSpeedOptions& deepspeed, Request* request) {
  if (SetDeepSpeedStyle(name, deepspeed, request)) {
    if (request->reports.empty() || request->reports.front()->name != "modules") {
      Complain(
          fmt::format("--format {} is for the report modules: ranktap report RUN modules", name));
      return false;
    }
    name = "text";
  }
  request->data_set.wanted = name == "parquet";
  if (request->data_set.wanted) name = "text";
  const std::optional<Format> format = FormatNamed(name);
  const std::string& last = request->paths.back();
  const bool unknown_name = request->paths.size() > 1 && ::access(last.c_str(), F_OK) != 0;
  if (!format || unknown_name) {
    Complain(format ? NoReport(last) : NoReportFormat(name));
    std::fputs("try: ranktap report --help\n", stderr);
    return false;
  }
  if (*format == Format::kCsv && request->reports.size() != 1) {
    Complain(
        "csv is one table: name one report, as in ranktap report RUN kernels --format csv, or "
        "take --format json or parquet");
    return false;
  }
  if (const auto problem = WrongUse(request->data_set, request->reports)) {
    Complain(*problem);
    return false;
  }
  if (request->data_set.wanted && request->view.time_unit != "auto") {
    Complain("--time-unit: times in a data set are ns, and columns are named so");
    return false;
  }
  request->view.format = *format;
  return true;
}

}  // namespace

int ReportCommand(const std::vector<std::string>& arguments) {
  if (const Report* const report = HelpWanted(arguments)) {
    std::fputs(ColumnsHelp(*report).c_str(), stdout);
    return Finish();
  }
  KeepLargeBlocks();
  Request request;
  std::vector<std::string> words;
  std::string format = "text";
  DeepSpeedOptions deepspeed;
  Arguments app("Prints reports of a run, or of traces that torch.profiler or nsys wrote.",
                "ranktap report");
  app.Add("RUN... [NAME...]", &words,
          "a run directory, a .trace file, torch.profiler's .json(.gz) files, nsys' "
          ".sqlite or a directory of them; then which reports")
      .Required();
  app.Add("--format", &format, "text, json, csv, html or parquet; modules: also deepspeed")
      .Suggests(ReportFormats())
      .ShowsDefault();
  AddRunOptions(&app, &request);
  AddViewOptions(&app, &request.view);
  AddDataSetOptions(&app, &request.data_set);
  AddReportOptions(&app, &request);
  AddDeepSpeedOptions(&app, &deepspeed, &request);
  AddThroughputOptions(&app, &request.options);
  AddRoofOptions(&app, &request.options);
  app.AddFooter(ReportsHelp());
  if (const auto status = app.Parse(arguments)) return *status;
  SplitWords(std::move(words), &request);
  if (const std::string meant = MeantReport(request.paths, request.reports); !meant.empty()) {
    return Complained(meant, kWrongUsage);
  }
  if (!SetFormat(std::move(format), deepspeed, &request) || !OptionsAreHeeded(request) ||
      !WayIsKnown(request.options.by, request.reports) || !DeviceIsKnown(request.options) ||
      !IsPossible(request.view)) {
    return kWrongUsage;
  }
  const std::string file = request.data_set.wanted ? "" : request.data_set.folder;
  return PrintInto(file, [&] { return PrintReports(std::move(request)); });
}

}  // namespace ranktap::collector
