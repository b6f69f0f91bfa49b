#include "collector/trace/load/run_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>

#include "collector/file/read_run_info.h"
#include "collector/file/run_directory.h"
#include "collector/trace/load/parallel_load.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/sort_rows.h"
#include "proto/sample_marks.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

bool IsTraceName(const std::string& name) {
  return name.ends_with(".trace") || name.ends_with(".trace.part");
}

void ReadInfo(const fs::path& directory, RunFiles* files) {
  const fs::path path = directory / "run.json";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  Result<RunInfo> info = ReadRunInfo(directory.string());
  if (!info) {
    files->problems.push_back(info.message());
    return;
  }
  files->info = std::move(*info);
  files->has_info = true;
}

void FindMissing(const fs::path& directory, RunFiles* files) {
  for (const TraceInfo& trace : files->info.traces) {
    const std::string path = (directory / trace.file).string();
    const auto is_there = [&](const std::string& name) {
      return std::find(files->traces.begin(), files->traces.end(), name) != files->traces.end();
    };
    // A collector that was killed had no time to write that a file has its final name.
    constexpr std::string_view kPart = ".part";
    const bool published =
        path.ends_with(kPart) && is_there(path.substr(0, path.size() - kPart.size()));
    if (!is_there(path) && !published) {
      files->problems.push_back(fmt::format("{}: named in run.json, and missing", path));
    }
  }
}

// A launcher, or a loader's worker: samples make no process a rank.
bool HasOnlySamples(const Trace& trace) {
  if (!trace.is_ours() || trace.marks.size() == 0 || trace.events != trace.marks.size()) {
    return false;
  }
  return std::ranges::all_of(trace.marks.domain, [&trace](uint32_t domain) {
    return trace.dictionary.Domain(domain) == proto::kSampleDomain;
  });
}

// The one program of a run stays, whatever was recorded of it.
void SetHelpersAside(std::vector<Trace>* traces) {
  const bool has_ranks = !std::ranges::all_of(*traces, HasOnlySamples);
  if (has_ranks) std::erase_if(*traces, HasOnlySamples);
}

// What is wrong with a dump whose collector did not come to its end; empty: nothing.
std::string HalfDumpProblem(const std::string& path) {
  std::error_code error;
  fs::path directory = fs::absolute(path, error).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  if (!IsHalfDump(directory.filename().string())) return {};
  return fmt::format(
      "{}: half a dump: its collector still makes it, or ended meanwhile; what it was of is in {}",
      path, directory.parent_path().string());
}

std::string FileName(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

Result<RunFiles> FindTraces(const std::string& path) {
  RunFiles files;
  files.path = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Failure{
        fmt::format("{}: no such file or directory; name a run directory or a .trace file", path)};
  }
  if (!fs::is_directory(status)) {
    files.traces.push_back(path);
    ReadInfo(fs::path(path).parent_path(), &files);
    return files;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (IsTraceName(FileName(entry.path().string()))) files.traces.push_back(entry.path().string());
  }
  if (error) return Failure{fmt::format("{}: could not list: {}", path, error.message())};
  if (std::string problem = HalfDumpProblem(path); !problem.empty()) {
    files.problems.push_back(std::move(problem));
  }
  std::sort(files.traces.begin(), files.traces.end());
  ReadInfo(path, &files);
  FindMissing(path, &files);
  return files;
}

void Describe(const RunInfo& run, Trace* trace) {
  trace->info.file = FileName(trace->path);
  trace->info.status = trace->closed ? TraceStatus::kClosed : TraceStatus::kOpen;
  if (trace->ending.how() == v1::Ending::HOW_DIED) trace->info.status = TraceStatus::kDied;
  if (trace->ending.how() == v1::Ending::HOW_ABANDONED) {
    trace->info.status = TraceStatus::kAbandoned;
  }
  trace->info.detail = trace->ending.detail();
  for (const TraceInfo& known : run.traces) {
    if (known.file != trace->info.file) continue;
    if (!trace->closed) trace->info.status = known.status;
    if (trace->info.detail.empty()) trace->info.detail = known.detail;
    if (known.pid != 0) trace->info.pid = known.pid;
  }
}

Result<Run> LoadRun(const std::string& path, const WantsTrace& wants, const LeaveOut& leave_out) {
  Result<RunFiles> files = FindTraces(path);
  if (!files) return Failure{files.message()};
  if (wants) std::erase_if(files->traces, [&](const std::string& file) { return !wants(file); });
  if (files->traces.empty()) {
    return Failure{fmt::format("{}: no traces in it; no traced process emitted an event", path)};
  }
  SpareColumns spare;
  auto loaded = LoadInParallel(files->traces, [&](const std::string& file) {
    Result<Trace> trace = LoadTrace(file, &spare);
    if (trace && leave_out) leave_out(&*trace, &spare);
    return trace;
  });
  Run run;
  run.path = path;
  run.info = std::move(files->info);
  run.problems = std::move(files->problems);
  for (std::optional<Result<Trace>>& trace : loaded) {
    if (!trace->ok()) {
      run.problems.push_back(trace->message());
      continue;
    }
    Describe(run.info, &**trace);
    run.traces.push_back(std::move(**trace));
  }
  if (run.traces.empty()) return Failure{run.problems.back()};
  SetHelpersAside(&run.traces);
  SortRows(&run.traces, [](const Trace& a, const Trace& b) {
    return std::tuple(a.info.rank.value_or(kNone), a.path) <
           std::tuple(b.info.rank.value_or(kNone), b.path);
  });
  return run;
}

}  // namespace ranktap::collector
