// `ranktap merge INPUT... -o FILE`: runs, nodes and torch.profiler's files of several ranks as one.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "collector/cli/command.h"
#include "collector/export/chrome/kineto_merge.h"
#include "collector/export/exporter.h"
#include "collector/import/importer.h"
#include "collector/import/open_run.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/progress_line.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

uint64_t BytesOf(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

// The files that the arguments stand for: a directory for the traces, or the JSON files, in it.
Result<std::vector<std::string>> Expand(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (!fs::is_directory(argument, error)) {
      if (!fs::exists(argument, error)) {
        return Failure{fmt::format("{}: no such file or directory", argument)};
      }
      files.push_back(argument);
      continue;
    }
    const size_t before = files.size();
    if (const Result<RunFiles> run = FindTraces(argument)) {
      files.insert(files.end(), run->traces.begin(), run->traces.end());
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(argument, error)) {
      const std::string name = entry.path().filename().string();
      if (before != files.size() && name == "run.json") continue;
      if (name.ends_with("comm_group.json")) continue;  // beside .et files: read with each
      if (name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".sqlite") ||
          name.ends_with(".et")) {
        files.push_back(entry.path());
      }
    }
    if (files.size() == before)
      return Failure{fmt::format("{}: no traces, JSON or SQLite files in it", argument)};
    std::sort(files.begin() + static_cast<ptrdiff_t>(before), files.end());
  }
  return files;
}

// Removes the files that a merge made on its way.
class Scratch {
 public:
  ~Scratch() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  std::string Next(const std::string& beside) {
    return paths_.emplace_back(fmt::format("{}.part{}.json", beside, paths_.size()));
  }

 private:
  std::vector<std::string> paths_;
};

// One trace at a time becomes JSON: a merge must not need the memory of all ranks.
Result<MergeInput> DescribeTrace(Trace* trace, const std::string& json,
                                 std::map<std::string, int64_t>* clock_of_boot) {
  Run run;
  Describe(run.info, trace);
  // Ranks of one boot of a host share a clock: the first one's offset holds for all.
  if (trace->has_clock && !trace->hello.process().boot_id().empty()) {
    trace->realtime_offset_ns =
        clock_of_boot->try_emplace(trace->hello.process().boot_id(), trace->realtime_offset_ns)
            .first->second;
  }
  const std::optional<uint32_t> rank = trace->info.rank;
  run.traces.push_back(std::move(*trace));
  const std::vector<const Trace*> traces = {&run.traces[0]};
  if (const auto failure = FindExporter("chrome")->write(run, traces, {}, json)) return *failure;
  Result<MergeInput> input = DescribeMergeInput(json);
  if (input && !input->rank) input->rank = rank;
  return input;
}

std::optional<Failure> MergeToJson(const std::vector<std::string>& files,
                                   const std::string& output) {
  Scratch scratch;
  std::map<std::string, int64_t> clock_of_boot;
  std::vector<MergeInput> inputs;
  const auto origin_of = [](const std::string& path) {
    const Importer* const importer = ImporterOf(path);
    return importer == nullptr ? std::nullopt : std::optional(importer->origin);
  };
  const bool timed = std::ranges::any_of(files, [&origin_of](const std::string& path) {
    return origin_of(path) != TraceOrigin::kExecution;
  });
  const auto add = [&inputs](Result<MergeInput> input, const std::string& path) {
    if (!input) return Complain(input.message());
    if (!input->rank) input->rank = RankInName(path);
    input->label =
        input->rank ? fmt::format("rank {}", *input->rank) : fs::path(path).filename().string();
    inputs.push_back(std::move(*input));
  };
  // Each is read once to find its clock and ranks, and once to be written.
  const uint64_t bytes = BytesOf(files);
  Progress().Begin("reading", bytes);
  for (const std::string& path : files) {
    const std::optional<TraceOrigin> origin = origin_of(path);
    // It has no times, and a viewer has no place for what it says beside the files that do.
    if (timed && origin == TraceOrigin::kExecution) continue;
    if (origin == TraceOrigin::kKineto) {
      add(DescribeMergeInput(path), path);
      continue;
    }
    Result<std::vector<Trace>> traces = LoadFile(path);
    if (!traces) {
      Complain(traces.message());
      continue;
    }
    for (Trace& trace : *traces) {
      add(DescribeTrace(&trace, scratch.Next(output), &clock_of_boot), path);
    }
  }
  if (inputs.empty()) return Failure{"nothing to merge"};
  SortRows(&inputs, [](const MergeInput& a, const MergeInput& b) {
    return a.rank.value_or(kNone) < b.rank.value_or(kNone);
  });
  Result<OutputFile> file = OutputFile::Create(output);
  if (!file) return Failure{file.message()};
  Progress().Begin("merging", bytes);
  MergeKineto(&inputs, &*file);
  for (const MergeInput& input : inputs) {
    for (const std::string& damage : input.damage) Complain(damage);
  }
  return file->Close();
}

// Formats that hold all ranks in one file are written from the model, with all ranks in memory.
std::optional<Failure> MergeToModel(const Exporter& exporter, const std::vector<std::string>& files,
                                    const std::string& output) {
  const Result<Run> run = OpenRun(files);
  if (!run) return Failure{run.message()};
  for (const std::string& problem : run->problems) Complain(problem);
  std::vector<const Trace*> traces;
  for (const Trace& trace : run->traces) traces.push_back(&trace);
  return exporter.write(*run, traces, {}, output);
}

}  // namespace

int MergeCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  std::vector<std::string> inputs;
  std::string output;
  Arguments app("Joins runs, nodes and torch.profiler's files of several ranks.", "ranktap merge");
  app.Add("INPUT", &inputs,
          "run directories, .trace files, torch.profiler's .json or .json.gz, nsys' "
          ".sqlite, Chakra's .et, or directories of those")
      .Required();
  app.Add("-o,--output", &output, "FILE.json, FILE.json.gz, FILE.pftrace or FILE.sqlite")
      .Required();
  if (const auto status = app.Parse(arguments)) return *status;
  const bool is_json = output.ends_with(".json") || output.ends_with(".json.gz");
  const Exporter* const exporter = output.ends_with(".pftrace")  ? FindExporter("perfetto")
                                   : output.ends_with(".sqlite") ? FindExporter("sqlite")
                                                                 : nullptr;
  if (!is_json && exporter == nullptr) {
    Complain(fmt::format("{}: the ending says the format: .json, .json.gz, .pftrace or .sqlite",
                         output));
    return kWrongUsage;
  }
  const Result<std::vector<std::string>> files = Expand(inputs);
  if (!files) {
    Complain(files.message());
    return kFailure;
  }
  const ProgressLine progress;
  const auto failure =
      is_json ? MergeToJson(*files, output) : MergeToModel(*exporter, *files, output);
  if (failure) {
    Complain(failure->message);
    return kFailure;
  }
  std::printf("%s\n", output.c_str());
  return kSuccess;
}

}  // namespace ranktap::collector
