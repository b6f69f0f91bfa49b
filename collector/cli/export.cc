// `ranktap export RUN --format F -o FILE`: a run in another tool's format.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "collector/cli/arguments.h"
#include "collector/cli/command.h"
#include "collector/export/exporter.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {
namespace {

std::string FormatsHelp() {
  std::string text = "Formats:\n";
  for (const Exporter& exporter : AllExporters()) {
    text += "  " + std::string(exporter.name) + std::string(10 - exporter.name.size(), ' ') +
            std::string(exporter.help) + "\n";
  }
  return text + "A run of several ranks becomes a directory with one file each.\n";
}

// nullopt: written.
std::optional<Failure> WriteTrace(const Exporter& exporter, const Run& run, const Trace& trace,
                                  const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  exporter.write(run, trace, &*file);
  if (auto failure = file->Close()) return failure;
  std::printf("%s\n", path.c_str());
  return std::nullopt;
}

// "rank-00003.trace" -> "rank-00003.json"
std::string FileName(const Trace& trace, const Exporter& exporter) {
  const std::string name = trace.info.file;
  return name.substr(0, name.find(".trace")) + std::string(exporter.extension);
}

std::optional<Failure> WriteAll(const Exporter& exporter, const Run& run,
                                const std::vector<const Trace*>& traces,
                                const std::string& output) {
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(output, error);
  if (traces.size() == 1 && !is_directory) {
    return WriteTrace(exporter, run, *traces[0], output);
  }
  if (!is_directory && ::mkdir(output.c_str(), 0777) != 0) {
    return SystemFailure(output + ": " + std::to_string(traces.size()) +
                             " ranks make a directory of files, which could not be created",
                         errno);
  }
  for (const Trace* const trace : traces) {
    const std::string path = output + "/" + FileName(*trace, exporter);
    if (auto failure = WriteTrace(exporter, run, *trace, path)) return failure;
  }
  return std::nullopt;
}

}  // namespace

int ExportCommand(const std::vector<std::string>& arguments) {
  std::string path, format = "chrome", output;
  uint32_t rank = 0;
  CLI::App app("Writes a run in another tool's format.", "ranktap export");
  app.add_option("RUN", path, "a run directory, or one .trace file")->required();
  app.add_option("--format", format, "which format")->capture_default_str();
  app.add_option("-o,--output", output, "file; a directory for several ranks")->required();
  const CLI::Option* const by_rank = app.add_option("--rank", rank, "only this rank");
  app.footer(FormatsHelp());
  if (const auto status = ParseArguments(&app, arguments)) return *status;
  const Exporter* const exporter = FindExporter(format);
  if (exporter == nullptr) {
    Complain("no format '" + format + "'; ranktap export --help lists them");
    return kWrongUsage;
  }
  const Result<Run> run = LoadRun(path);
  if (!run) {
    Complain(run.message());
    return kFailure;
  }
  std::vector<const Trace*> traces;
  for (const Trace& trace : run->traces) {
    if (by_rank->empty() || trace.info.rank == rank) traces.push_back(&trace);
  }
  for (const std::string& problem : run->problems) Complain(problem);
  if (traces.empty()) {
    Complain(path + ": no trace of rank " + std::to_string(rank));
    return kFailure;
  }
  if (const auto failure = WriteAll(*exporter, *run, traces, output)) {
    Complain(failure->message);
    return kFailure;
  }
  return kSuccess;
}

}  // namespace ranktap::collector
