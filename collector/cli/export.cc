// `ranktap export RUN --format F -o FILE`: a run in another tool's format.
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "collector/cli/arguments.h"
#include "collector/cli/command.h"
#include "collector/export/exporter.h"
#include "collector/export/run_clock.h"
#include "collector/export/split_export.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/report/human_units.h"
#include "collector/symbols/resolve_stacks.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

struct Wanted {
  std::string path, format, output, window, min_duration, nvtx_as, pftrace_gpu, arrows;
  bool hta_compat = false;
  uint64_t split_mb = 0;
  std::vector<uint32_t> ranks;
  std::vector<std::string> symbols;
};

std::string FormatsHelp() {
  std::string text = "Formats:\n";
  for (const Exporter& exporter : AllExporters()) {
    text += fmt::format("  {:<17}{}\n", exporter.name, exporter.help);
  }
  return text;
}

// "rank-00003.trace" -> "rank-00003.json"
std::string FileName(const Trace& trace, const Exporter& exporter) {
  if (!exporter.rank_file.empty() && trace.info.rank) {
    std::string name(exporter.rank_file);
    return name.replace(name.find('#'), 1, std::to_string(*trace.info.rank));
  }
  const std::string name = trace.info.file;
  const size_t end = std::min(name.find(".trace"), name.find(".json"));
  return name.substr(0, end) + std::string(exporter.extension);
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

std::optional<Failure> WriteAll(const Exporter& exporter, const Run& run,
                                std::span<const Trace* const> traces, const ExportOptions& options,
                                const std::string& output) {
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(output, error);
  if (exporter.ranks_in_one_file) {
    if (!is_directory) return WriteOne(exporter, run, traces, options, output);
    const std::string path = output + "/run" + std::string(exporter.extension);
    return WriteOne(exporter, run, traces, options, path);
  }
  if (traces.size() == 1 && !is_directory) {
    return WriteOne(exporter, run, traces, options, output);
  }
  if (!is_directory && ::mkdir(output.c_str(), 0777) != 0) {
    return SystemFailure(
        fmt::format("{}: {} ranks make a directory of files, which could not be created", output,
                    traces.size()),
        errno);
  }
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::string path = output + "/" + FileName(*traces[i], exporter);
    if (auto failure = WriteOne(exporter, run, traces.subspan(i, 1), options, path)) {
      return failure;
    }
  }
  return std::nullopt;
}

// "FROM:TO" after the run's first event; either may be missing.
bool ParseWindow(const std::string& text, int64_t first, ExportOptions* options) {
  if (text.empty()) return true;
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const auto read = [first](const std::string& part, int64_t* time) {
    if (part.empty()) return true;
    const auto after = ParseDuration(part);
    if (!after) return false;
    *time = first + static_cast<int64_t>(*after);
    return true;
  };
  return read(text.substr(0, colon), &options->from) &&
         read(text.substr(colon + 1), &options->to) && options->from < options->to;
}

// The sentence about an option that the format does not heed; nullopt: there is none.
std::optional<std::string> Unheeded(const Wanted& wanted, const Exporter& exporter) {
  const struct {
    bool given;
    uint32_t bit;
    std::string_view name;
  } options[] = {{wanted.hta_compat, kHtaNames, "--hta-compat"},
                 {!wanted.nvtx_as.empty(), kHtaNames, "--nvtx-as"},
                 {!wanted.pftrace_gpu.empty(), kGpuStages, "--pftrace-gpu"},
                 {!wanted.arrows.empty(), kArrows, "--arrows"},
                 {wanted.split_mb != 0, kPieces, "--split-mb"}};
  for (const auto& option : options) {
    if (!option.given || (exporter.heeds & option.bit) != 0) continue;
    return fmt::format("{} is for {}, not for {}", option.name, FormatsThatHeed(option.bit),
                       exporter.name);
  }
  if (wanted.split_mb != 0 && wanted.output.ends_with(".tar")) {
    return "--split-mb makes files of its own: name an output without .tar";
  }
  return std::nullopt;
}

std::optional<std::string> ParseOptions(const Wanted& wanted, const Run& run,
                                        ExportOptions* options) {
  if (!ParseWindow(wanted.window, FirstRealtime(run), options)) {
    return fmt::format(
        "--window {}: not FROM:TO, two durations after the run's first event such as 1.5s:2s, "
        "200ms: or :1s",
        wanted.window);
  }
  if (!wanted.min_duration.empty()) {
    const auto shortest = ParseDuration(wanted.min_duration);
    if (!shortest) {
      return fmt::format("--min-duration {}: not a duration such as 5us", wanted.min_duration);
    }
    options->min_duration = static_cast<int64_t>(*shortest);
  }
  options->render_stages = wanted.pftrace_gpu == "renderstage";
  options->tensor_arrows = !wanted.arrows.empty();
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

void AddOptions(Arguments* app, Wanted* wanted) {
  app->Add("RUN", &wanted->path, "a run directory, a .trace file, or torch.profiler's JSON")
      .Required();
  app->Add("--format", &wanted->format, "which format").ShowsDefault();
  app->Add("-o,--output", &wanted->output,
           "file; a directory where the format has a file for each rank")
      .Required();
  app->Add("--rank,--ranks", &wanted->ranks, "only these ranks").CommaSeparated();
  app->Add("--window", &wanted->window,
           "FROM:TO after the run's first event (1.5s:2s); what overlaps it is kept");
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
  app->Add("--symbols", &wanted->symbols,
           "folders with modules or debug information, for names on stacks");
  app->AddFooter(FormatsHelp());
}

std::vector<const Trace*> TracesOf(const Run& run, const std::vector<uint32_t>& ranks) {
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) {
    if (ranks.empty() || (trace.info.rank && std::ranges::count(ranks, *trace.info.rank) != 0)) {
      traces.push_back(&trace);
    }
  }
  return traces;
}

}  // namespace

int ExportCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  Wanted wanted;
  wanted.format = "chrome";
  Arguments app("Writes a run in another tool's format.", "ranktap export");
  AddOptions(&app, &wanted);
  if (const auto status = app.Parse(arguments)) return *status;
  const Exporter* const exporter = FindExporter(wanted.format);
  if (exporter == nullptr) {
    return Complained(
        fmt::format("no format '{}'; ranktap export --help lists them", wanted.format),
        kWrongUsage);
  }
  if (const auto problem = Unheeded(wanted, *exporter)) return Complained(*problem, kWrongUsage);
  Result<Run> run = OpenRun({wanted.path});
  if (!run) return Complained(run.message(), kFailure);
  ExportOptions options;
  if (const auto problem = ParseOptions(wanted, *run, &options)) {
    return Complained(*problem, kWrongUsage);
  }
  if (exporter->needs_symbols) ResolveStacks(wanted.symbols, &*run);
  const std::vector<const Trace*> traces = TracesOf(*run, wanted.ranks);
  for (const std::string& problem : run->problems) Complain(problem);
  if (traces.empty()) {
    return Complained(fmt::format("{}: no trace of the ranks asked for", wanted.path), kFailure);
  }
  if (const auto failure = WriteAll(*exporter, *run, traces, options, wanted.output)) {
    return Complained(failure->message, kFailure);
  }
  return kSuccess;
}

}  // namespace ranktap::collector
