#include "collector/import/open_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "collector/import/execution/link_traces.h"
#include "collector/import/importer.h"
#include "collector/trace/load/parallel_load.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// Also what no importer reads and we can say why: a run without it would seem complete.
bool IsForeign(const std::string& path) {
  return ImporterOf(path) != nullptr || !WhyNoImporterReads(path).empty();
}
std::optional<TraceOrigin> OriginOf(const std::string& path) {
  const Importer* const importer = ImporterOf(path);
  return importer == nullptr ? std::nullopt : std::optional(importer->origin);
}
bool IsMemory(const std::string& path) { return OriginOf(path) == TraceOrigin::kMemory; }

std::vector<std::string> ForeignFilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(error) || name.starts_with(".")) continue;
    if (!HasImportedEnding(name)) continue;
    if (name != "run.json" && IsForeign(entry.path().string())) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  // "comm_group.json" beside .et files is read with each of them.
  const auto is_chakra = [](const std::string& path) {
    return OriginOf(path) == TraceOrigin::kChakra;
  };
  if (std::any_of(files.begin(), files.end(), is_chakra)) {
    std::erase_if(files, [](const std::string& path) { return path.ends_with("comm_group.json"); });
  }
  // Beside traces they are of the same ranks.
  if (!std::all_of(files.begin(), files.end(), IsMemory)) std::erase_if(files, IsMemory);
  return files;
}

void Shift(int64_t by_ns, Trace* trace) {
  if (by_ns == 0) return;
  ForEachTable(*trace, [by_ns](auto& table) {
    for (TimeColumn* const column : {&table.start, &table.end}) {
      std::vector<int64_t> times(column->begin(), column->end());
      for (int64_t& time : times) time += time == kUntimed ? 0 : by_ns;
      column->Write(0, times);
    }
  });
  for (proto::OverheadEvent& event : trace->overheads) {
    event.start_ns += static_cast<uint64_t>(by_ns);
    event.end_ns += static_cast<uint64_t>(by_ns);
  }
  trace->first_ns += by_ns;
  trace->last_ns += by_ns;
}

// baseTimeNanoseconds of the files may differ; all times count from the earliest of them.
void ShareOneBase(std::vector<Trace>* traces) {
  std::optional<int64_t> base;
  for (const Trace& trace : *traces) {
    if (!trace.is_ours()) {
      base = std::min(base.value_or(trace.base_time_ns), trace.base_time_ns);
    }
  }
  for (Trace& trace : *traces) {
    if (trace.is_ours()) continue;
    int64_t by = 0;
    if (__builtin_sub_overflow(trace.base_time_ns, *base, &by) || by > int64_t{1} << 61) continue;
    Shift(by, &trace);
    trace.base_time_ns = trace.realtime_offset_ns = *base;
  }
}

void NameRanks(Run* run) {
  std::map<std::string, size_t> processes;
  for (const Trace& trace : run->traces) ++processes[trace.path];
  std::map<uint32_t, std::pair<std::string, uint32_t>> seen;  // file and process, by rank
  size_t windows = 0;                                         // more than one of a process
  for (Trace& trace : run->traces) {
    if (trace.is_ours()) continue;
    if (trace.info.file.empty()) trace.info.file = fs::path(trace.path).filename().string();
    if (!trace.info.rank && processes[trace.path] == 1) {
      trace.info.rank = RankInName(trace.path);
      if (trace.info.rank) trace.info.rank_origin = "file name";
    }
    if (!trace.info.rank) continue;
    const auto [at, is_new] = seen.try_emplace(*trace.info.rank, trace.path, trace.info.pid);
    if (is_new) continue;
    if (trace.info.pid != 0 && trace.info.pid == at->second.second) {
      ++windows;
    } else {
      run->problems.push_back(fmt::format("{}: says it is rank {}, as {} does", trace.path,
                                          at->first, at->second.first));
    }
  }
  if (windows > 0) {
    run->traces.front().info.notes.push_back(
        fmt::format("with the others: {} of the files are later windows of a process that is here "
                    "already; each has its own row",
                    windows));
  }
}

// What a ByteSource will count while they are read; 0: other readers have a part in it.
uint64_t BytesToRead(const std::vector<std::string>& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    if (OriginOf(path) != TraceOrigin::kKineto) return 0;
    const uint64_t size = fs::file_size(path, error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

Result<Run> LoadForeign(const std::vector<std::string>& paths) {
  auto loaded = LoadInParallel(paths, &LoadFile, BytesToRead(paths));
  Run run;
  run.path = paths.size() == 1 ? paths[0] : fs::path(paths[0]).parent_path().string();
  for (std::optional<Result<std::vector<Trace>>>& file : loaded) {
    if (file->ok()) {
      for (Trace& trace : **file) run.traces.push_back(std::move(trace));
    } else {
      run.problems.push_back(file->message());
    }
  }
  if (run.traces.empty()) return Failure{run.problems.front()};
  LinkExecutionTraces(&run.traces, &run.problems);
  NameRanks(&run);
  ShareOneBase(&run.traces);
  SortRows(&run.traces, [](const Trace& a, const Trace& b) {
    return std::tuple(a.info.rank.value_or(kNone), a.path) <
           std::tuple(b.info.rank.value_or(kNone), b.path);
  });
  return run;
}

}  // namespace

std::optional<uint32_t> RankInName(const std::string& path) {
  constexpr std::string_view kWord = "rank";
  constexpr size_t kMostDigits = 7;
  std::string name = fs::path(path).filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is_digit = [&name](size_t at) {
    return at < name.size() && name[at] >= '0' && name[at] <= '9';
  };
  std::optional<uint32_t> rank;
  for (size_t at = name.find(kWord); at != name.npos; at = name.find(kWord, at)) {
    at += kWord.size();
    if (at < name.size() && std::string_view("-_.").find(name[at]) != std::string_view::npos) ++at;
    if (!is_digit(at)) continue;
    uint32_t number = 0;
    for (size_t digits = 0; digits < kMostDigits && is_digit(at); ++digits, ++at) {
      number = 10 * number + static_cast<uint32_t>(name[at] - '0');
    }
    rank = number;
  }
  return rank;
}

Result<std::vector<Trace>> LoadFile(const std::string& path) {
  if (const Importer* const importer = ImporterOf(path)) return importer->load(path);
  if (const std::string why = WhyNoImporterReads(path); !why.empty()) {
    return Failure{fmt::format("{}: {}", path, why)};
  }
  Result<Trace> trace = LoadTrace(path);
  if (!trace) return Failure{trace.message()};
  std::vector<Trace> traces;
  traces.push_back(std::move(*trace));
  return traces;
}

namespace {

// Runs, and directories of others' traces, at most two levels below: a collector's runs lie in a
// directory for each user.
std::vector<std::string> RunsBelow(const std::string& directory, int levels = 2) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    const std::string inside = at->path().string();
    if (!at->is_directory(unreadable) || at->is_symlink(unreadable)) continue;
    if (at->path().filename().string().starts_with("spools-")) continue;
    const Result<RunFiles> files = FindTraces(inside);
    if ((files && !files->traces.empty()) || !ForeignFilesIn(inside).empty()) {
      found.push_back(inside);
    } else if (levels > 1) {
      std::ranges::move(RunsBelow(inside, levels - 1), std::back_inserter(found));
    }
  }
  std::ranges::sort(found);
  return found;
}

// The error for a directory without any file that is read.
std::string NothingIn(const std::string& directory) {
  constexpr size_t kMostNamed = 5;
  std::string text = fmt::format(
      "{}: no file of ranktap, torch.profiler, nsys or PyTorch's memory profiler in it", directory);
  const std::vector<std::string> runs = RunsBelow(directory);
  if (runs.empty()) return text;
  if (runs.size() == 1) return fmt::format("{}; {} has some: name that", text, runs[0]);
  text += fmt::format("; {} directories below have some: name one of", runs.size());
  for (size_t i = runs.size() - std::min(runs.size(), kMostNamed); i < runs.size(); ++i) {
    text += (text.back() == 'f' ? " " : ", ") + runs[i];
  }
  return text + (runs.size() > kMostNamed ? " (the last of them)" : "");
}

}  // namespace

Result<Run> OpenRun(const std::vector<std::string>& paths, const WantsTrace& wants,
                    const LeaveOut& leave_out) {
  if (paths.empty()) return Failure{"no file or run is named"};
  if (paths.size() > 1) return LoadForeign(paths);
  std::error_code error;
  if (!fs::is_directory(paths[0], error)) {
    if (!paths[0].ends_with(".trace") && fs::is_regular_file(paths[0], error) &&
        fs::file_size(paths[0], error) == 0) {
      return Failure{fmt::format("{}: is empty", paths[0])};
    }
    return IsForeign(paths[0]) ? LoadForeign(paths) : LoadRun(paths[0], {}, leave_out);
  }
  const Result<RunFiles> files = FindTraces(paths[0]);
  if (files && !files->traces.empty()) return LoadRun(paths[0], wants, leave_out);
  const std::vector<std::string> foreign = ForeignFilesIn(paths[0]);
  if (!foreign.empty()) return LoadForeign(foreign);
  if (!fs::exists(fs::path(paths[0]) / "run.json", error)) return Failure{NothingIn(paths[0])};
  return LoadRun(paths[0]);
}

}  // namespace ranktap::collector
