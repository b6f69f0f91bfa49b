// `ranktap export RUN --format F [-o FILE]`: a run in another tool's format.
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

#include "collector/cli/command.h"
#include "collector/cli/export_name.h"
#include "collector/cli/host_roofs.h"
#include "collector/cli/known_words.h"
#include "collector/cli/ncu_files.h"
#include "collector/cli/run_selection.h"
#include "collector/export/exporter.h"
#include "collector/export/recorded_cycles.h"
#include "collector/export/run_clock.h"
#include "collector/export/split_export.h"
#include "collector/facts/roofline/roofline_rows.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/parquet/data_set.h"
#include "collector/report/human_units.h"
#include "collector/report/nearest_name.h"
#include "collector/symbols/resolve_stacks.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/later_runs.h"
#include "collector/terminal/progress_line.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

struct WantedExport {
  std::vector<std::string> paths;
  std::string format, output, window, min_duration, nvtx_as, pftrace_gpu, arrows, run_name;
  std::string replayed_operator;
  bool hta_compat = false, cycles = false, replace = false;
  RooflineOptions roofline;
  uint64_t split_mb = 0;
  RunSelection selection;
  std::vector<std::string> symbols;
};

std::string FormatsHelp() {
  std::string text = "Formats:\n";
  for (const Exporter& exporter : AllExporters()) {
    text += fmt::format("  {:<17}{}\n", exporter.name, exporter.help);
  }
  return text;
}

// "rank-00003.trace" -> "rank-00003.pt.trace.json"
std::string FileName(const Trace& trace, const Exporter& exporter) {
  if (!exporter.rank_file.empty() && trace.info.rank) {
    std::string name(exporter.rank_file);
    return name.replace(name.find('#'), 1, std::to_string(*trace.info.rank));
  }
  const std::string name = trace.info.file;
  const size_t end = std::min(name.find(".trace"), name.find(".json"));
  return name.substr(0, end) + std::string(exporter.extension);
}

// "out.json" of several ranks is a folder `out`.
std::string FolderNamed(const std::string& output, const Exporter& exporter) {
  const std::filesystem::path path(output);
  std::string ending = path.extension().string();
  if (ending.empty()) return output;
  if (output.ends_with(exporter.extension)) ending = exporter.extension;
  if (!exporter.extension.ends_with(ending)) return output;
  return output.substr(0, output.size() - ending.size());
}

// nullopt: written.
std::optional<Failure> WriteOne(const Exporter& exporter, const Run& run,
                                std::span<const Trace* const> traces, const ExportOptions& options,
                                const std::string& path) {
  if (options.split_bytes != 0) {
    const auto pieces = WriteSplit(exporter, run, traces, options, path, options.split_bytes);
    if (!pieces) return Failure{pieces.message()};
    for (const std::string& piece : *pieces) std::printf("%s\n", Printable(piece).c_str());
    return std::nullopt;
  }
  if (auto failure = exporter.write(run, traces, options, path)) return failure;
  std::printf("%s\n", path.c_str());
  return std::nullopt;
}

// A data set is asked for counts and sums, by people who do not look at traces.
std::optional<Failure> WriteDataSet(const Exporter& exporter, const Run& run,
                                    std::span<const Trace* const> traces,
                                    const ExportOptions& options, const std::string& output) {
  for (const Trace* const trace : traces) {
    if (trace->damage.empty()) continue;
    const Damage& first = trace->damage[0];
    Complain(Printable(
        fmt::format("{}: damaged at byte {} ({}): only what can be read is exported, and `damaged` "
                    "is true in table ranks; ranktap verify says what is missing",
                    trace->path, first.offset, first.what)));
  }
  return WriteOne(exporter, run, traces, options, output);
}

// `windows`: of each trace, where it has a file of its own and a window of its own.
std::optional<Failure> WriteAll(const Exporter& exporter, const Run& run,
                                std::span<const Trace* const> traces, const ExportOptions& options,
                                const std::string& output, std::span<const Interval> windows = {}) {
  Progress().Begin("writing", 0);
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(output, error);
  if ((exporter.heeds & kDataSet) != 0) return WriteDataSet(exporter, run, traces, options, output);
  if (exporter.ranks_in_one_file) {
    if (!is_directory || exporter.makes_folder)
      return WriteOne(exporter, run, traces, options, output);
    const std::string path = output + "/run" + std::string(exporter.extension);
    return WriteOne(exporter, run, traces, options, path);
  }
  if (traces.size() == 1 && !is_directory) {
    return WriteOne(exporter, run, traces, options, output);
  }
  const std::string folder = is_directory ? output : FolderNamed(output, exporter);
  if (::mkdir(folder.c_str(), 0777) != 0 && !std::filesystem::is_directory(folder, error)) {
    return SystemFailure(
        fmt::format("{}: {} ranks make a directory of files, which could not be created", folder,
                    traces.size()),
        errno);
  }
  Progress().Begin("writing", traces.size());
  for (size_t i = 0; i < traces.size(); ++i, ++Progress().done) {
    const std::string path = folder + "/" + FileName(*traces[i], exporter);
    ExportOptions own = options;
    if (!windows.empty()) std::tie(own.from, own.to) = windows[i];
    if (auto failure = WriteOne(exporter, run, traces.subspan(i, 1), own, path)) {
      return failure;
    }
  }
  return std::nullopt;
}

using Exporters = std::vector<const Exporter*>;

// "chrome,perfetto"
Result<Exporters> FindExporters(std::string_view names) {
  Exporters exporters;
  while (true) {
    const size_t comma = std::min(names.find(','), names.size());
    const Exporter* const exporter = FindExporter(names.substr(0, comma));
    if (exporter == nullptr) {
      return Failure{fmt::format("no format '{}'{}; ranktap export --help lists them",
                                 names.substr(0, comma),
                                 DidYouMean(names.substr(0, comma), ExportFormats()))};
    }
    exporters.push_back(exporter);
    if (comma == names.size()) return exporters;
    names.remove_prefix(comma + 1);
  }
}

// The sentence about an option that no format heeds; nullopt: there is none.
std::optional<std::string> Unheeded(const WantedExport& wanted, const Exporters& exporters) {
  uint32_t heeds = 0;
  for (const Exporter* const exporter : exporters) heeds |= exporter->heeds;
  const struct {
    bool given;
    uint32_t bit;
    std::string_view name;
  } options[] = {{wanted.hta_compat, kHtaNames, "--hta-compat"},
                 {!wanted.nvtx_as.empty(), kHtaNames, "--nvtx-as"},
                 {!wanted.pftrace_gpu.empty(), kGpuStages, "--pftrace-gpu"},
                 {!wanted.arrows.empty(), kArrows, "--arrows"},
                 {wanted.split_mb != 0, kPieces, "--split-mb"},
                 {!wanted.run_name.empty(), kDataSet, "--run-name"},
                 {wanted.replace, kDataSet, "--replace"},
                 {!wanted.replayed_operator.empty(), kReplayed, "--operator"},
                 {!wanted.roofline.by.empty(), kRooflines, "--by"},
                 {wanted.roofline.depth >= 0, kRooflines, "--depth"},
                 {!wanted.roofline.device.empty(), kRooflines, "--device"},
                 {wanted.roofline.peak_flops != 0, kRooflines, "--peak-flops"},
                 {wanted.roofline.peak_bandwidth != 0, kRooflines, "--peak-bandwidth"},
                 {!wanted.selection.roofs.empty(), kRooflines, "--roofs"},
                 {!wanted.selection.ncu.empty(), kRooflines, "--ncu"}};
  for (const auto& option : options) {
    if (!option.given || (heeds & option.bit) != 0) continue;
    return fmt::format("{} is for {}, not for {}", option.name, FormatsThatHeed(option.bit),
                       wanted.format);
  }
  if (wanted.split_mb != 0 && wanted.output.ends_with(".tar")) {
    return "--split-mb makes files of its own: name an output without .tar";
  }
  if (!wanted.run_name.empty() && !IsRunName(wanted.run_name)) {
    return fmt::format("--run-name {}: letters, digits, '.', '_' and '-' only", wanted.run_name);
  }
  return std::nullopt;
}

std::optional<std::string> ParseOptions(const WantedExport& wanted, const Run& run,
                                        ExportOptions* options) {
  if (!wanted.window.empty()) {
    const auto window = ParseWindow(wanted.window, FirstRealtime(run));
    if (!window) return NoWindow(wanted.window);
    options->from = window->from;
    options->to = window->to;
  }
  if (!wanted.min_duration.empty()) {
    const auto shortest = ParseDuration(wanted.min_duration);
    if (!shortest) {
      return fmt::format("--min-duration {}: not a duration such as 5us", wanted.min_duration);
    }
    options->min_duration = static_cast<int64_t>(*shortest);
  }
  options->roofline = wanted.roofline;
  options->render_stages = wanted.pftrace_gpu == "renderstage";
  options->tensor_arrows = !wanted.arrows.empty();
  options->run_name = wanted.run_name;
  options->replace_run = wanted.replace;
  options->replayed_operator = wanted.replayed_operator;
  options->some_steps = !wanted.selection.steps.empty();
  options->split_bytes = wanted.split_mb * 1'000'000;
  options->hta_compat = wanted.hta_compat;
  options->ranges_as_operators =
      wanted.nvtx_as == "cpu_op" || (wanted.hta_compat && wanted.nvtx_as.empty());
  return std::nullopt;
}

// "chrome, perfetto: HELP", from the registry.
std::string OfFormats(uint32_t option, const std::string& help) {
  return fmt::format("{}: {}", FormatsThatHeed(option), help);
}

void AddOptions(Arguments* app, WantedExport* wanted) {
  app->Add("RUN...", &wanted->paths,
           "a run directory, a .trace file, or torch.profiler's JSON files")
      .Required();
  app->Add("--format", &wanted->format, "the format; name several as chrome,perfetto")
      .Suggests(ExportFormats())
      .ShowsDefault();
  app->Add("-o,--output", &wanted->output,
           "file; a directory where there is a file for each rank, cycle or format. Default: "
           "RUN.pftrace and the like, here");
  app->Add("--rank,--ranks", &wanted->selection.ranks, "only these ranks: 0,2-5");
  app->Add("--steps", &wanted->selection.steps, "only these steps: 10-19");
  app->Add("--window", &wanted->window,
           "keep what overlaps FROM:TO after the run's first event (1.5s:2s)");
  app->AddFlag("--cycles", &wanted->cycles,
               "write a file for each cycle of run --schedule: each stretch of steps that were "
               "recorded operator by operator");
  app->Add("--arrows", &wanted->arrows,
           OfFormats(kArrows,
                     "tensors, for arrows from the operator that made a tensor to those that take "
                     "it, in runs of ranktap run --tensors"))
      .OneOf({"tensors"});
  app->Add("--min-duration", &wanted->min_duration, "leave out what is shorter (5us)");
  app->Add("--split-mb", &wanted->split_mb,
           OfFormats(kPieces, "files of at most this many MB, one after the other in time"))
      .From(1, 1'000'000);
  app->AddFlag("--hta-compat", &wanted->hta_compat,
               OfFormats(kHtaNames,
                         "the names, steps and operators that Holistic Trace Analysis looks for"));
  app->Add("--nvtx-as", &wanted->nvtx_as,
           OfFormats(kHtaNames, "the category of NVTX ranges, user_annotation or cpu_op"))
      .OneOf({"user_annotation", "cpu_op"});
  app->Add("--pftrace-gpu", &wanted->pftrace_gpu,
           OfFormats(kGpuStages,
                     "device work as trackevent (default) or as renderstage, for the GPU views of "
                     "trace processors of 2026"))
      .OneOf({"trackevent", "renderstage"});
  app->Add("--run-name", &wanted->run_name,
           OfFormats(kDataSet, "the run's name in the data set; else that of its directory"));
  app->AddFlag("--replace", &wanted->replace,
               OfFormats(kDataSet, "write the run again where the data set has it already"));
  app->Add("--operator", &wanted->replayed_operator,
           OfFormats(kReplayed,
                     "only the operators of this name (aten::mm), or the one with this "
                     "External id in Chrome's export"));
  app->Add("--symbols", &wanted->symbols,
           "folders with modules or debug information, for names on stacks");
  app->AddFooter(FormatsHelp());
}

void AddRooflineOptions(Arguments* app, RooflineOptions* options) {
  app->Add("--by", &options->by,
           OfFormats(kRooflines, "what each point stands for; else an operator"))
      .OneOf({kRooflineByNames.begin(), kRooflineByNames.end()});
  app->Add("--depth", &options->depth,
           OfFormats(kRooflines, "with --by module: how many parts of a name below the root"))
      .From(0, 1'000);
  app->Add("--device", &options->device,
           OfFormats(kRooflines,
                     "draw the ceilings of this device, as \"A100 80GB\", \"1080 Ti\"; else of the "
                     "traces' own"));
  app->Add("--peak-flops", &options->peak_flops,
           OfFormats(kRooflines, "FLOP/s that the device can reach, as 989e12"))
      .Positive();
  app->Add("--peak-bandwidth", &options->peak_bandwidth,
           OfFormats(kRooflines, "B/s that its memory can give, as 3.35e12"))
      .Positive();
}

// "run.json.gz" -> "run.cycle-0.json.gz"; "OUT" -> "OUT/cycle-0" where it is a directory.
std::string NameOfCycle(const std::string& output, bool is_directory, size_t number) {
  if (is_directory) {
    return fmt::format("{}{}cycle-{}", output, output.ends_with('/') ? "" : "/", number);
  }
  const size_t name = output.rfind('/') == std::string::npos ? 0 : output.rfind('/') + 1;
  const size_t dot = std::min(output.find('.', name + 1), output.size());
  return fmt::format("{}.cycle-{}{}", output.substr(0, dot), number, output.substr(dot));
}

std::optional<Failure> MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return std::nullopt;
  return SystemFailure(fmt::format("{}: could not create the directory", path), error.value());
}

std::optional<Failure> WriteFormats(const Exporters& exporters, const Run& run,
                                    const ExportOptions& options, const std::string& output,
                                    std::span<const Interval> windows = {}) {
  if (exporters.size() > 1) {
    if (auto failure = MakeDirectory(output)) return failure;
  }
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) traces.push_back(&trace);
  for (const Exporter* const exporter : exporters) {
    if (auto failure = WriteAll(*exporter, run, traces, options, output, windows)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> WriteCycles(const Exporters& exporters, const Run& run,
                                   ExportOptions options, const std::string& output) {
  const std::vector<RecordedCycle> cycles = RecordedCycles(run);
  if (cycles.empty()) {
    return Failure{"--cycles: no step was recorded operator by operator; see run --schedule"};
  }
  const bool one_file = exporters.size() == 1 &&
                        (exporters[0]->ranks_in_one_file || run.traces.size() == 1) &&
                        !output.ends_with('/') && !std::filesystem::is_directory(output);
  // TensorBoard looks at names with an ending alone.
  const bool has_ending = !one_file || std::filesystem::path(output).has_extension();
  const std::string named = has_ending ? output : output + std::string(exporters[0]->extension);
  options.starts_inside = true;
  for (size_t i = 0; i < cycles.size(); ++i) {
    std::tie(options.from, options.to) = cycles[i].of_all;
    const std::string path = NameOfCycle(named, !one_file, i);
    if (!one_file) {
      if (auto failure = MakeDirectory(path)) return failure;
    }
    if (auto failure = WriteFormats(exporters, run, options, path, cycles[i].by_trace)) {
      return failure;
    }
  }
  return std::nullopt;
}

}  // namespace

int ExportCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  WantedExport wanted;
  wanted.format = "chrome";
  Arguments app("Writes a run in another tool's format.", "ranktap export");
  AddOptions(&app, &wanted);
  AddRooflineOptions(&app, &wanted.roofline);
  AddHostRoofsOption(&app, &wanted.selection.roofs);
  AddNcuOption(&app, &wanted.selection.ncu);
  if (const auto status = app.Parse(arguments)) return *status;
  const Result<Exporters> exporters = FindExporters(wanted.format);
  if (!exporters) return Complained(exporters.message(), kWrongUsage);
  if (const auto problem = Unheeded(wanted, *exporters)) return Complained(*problem, kWrongUsage);
  const ProgressLine progress;
  Result<Run> run = OpenRun(LastRunsIn(wanted.paths));
  if (!run) return Complained(run.message(), kFailure);
  ExportOptions options;
  if (const auto problem = ParseOptions(wanted, *run, &options)) {
    return Complained(*problem, kWrongUsage);
  }
  for (const std::string& problem : run->problems) Complain(problem);
  std::vector<std::string> notes;
  if (!SelectOfRun(wanted.selection, &*run, &notes)) return kWrongUsage;
  for (const std::string& note : notes) Complain(Printable(note));
  if (std::ranges::any_of(*exporters, [](const Exporter* one) { return one->needs_symbols; })) {
    ResolveStacks(wanted.symbols, &*run);
  }
  if (wanted.output.empty()) {
    wanted.output = DefaultOutput(wanted.paths, *exporters, run->traces.size());
  }
  std::set<std::string> handed_on;
  options.handed_on = &handed_on;
  const auto failure = wanted.cycles ? WriteCycles(*exporters, *run, options, wanted.output)
                                     : WriteFormats(*exporters, *run, options, wanted.output);
  if (!handed_on.empty()) Complain(Printable(DescribeHandedOn(handed_on)));
  return failure ? Complained(failure->message, kFailure) : kSuccess;
}

}  // namespace ranktap::collector
