#include "collector/import/open_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <tuple>

#include "collector/import/byte_source.h"
#include "collector/import/kineto/kineto_importer.h"
#include "collector/import/memory/memory_importer.h"
#include "collector/import/nsys/nsys_importer.h"
#include "collector/trace/load/parallel_load.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

bool IsForeign(const std::string& path) {
  const FileKind kind = KindOf(path);
  return kind != FileKind::kTrace && kind != FileKind::kUnknown;
}
bool IsMemory(const std::string& path) {
  const FileKind kind = KindOf(path);
  return kind == FileKind::kMemorySnapshot || kind == FileKind::kMemoryTimeline;
}

std::vector<std::string> ForeignFilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(error) || name.starts_with(".")) continue;
    static constexpr std::string_view kEndings[] = {".json",   ".json.gz", ".sqlite",
                                                    ".pickle", ".pkl",     ".raw.gz"};
    if (std::none_of(std::begin(kEndings), std::end(kEndings),
                     [&name](std::string_view ending) { return name.ends_with(ending); })) {
      continue;
    }
    if (name != "run.json" && IsForeign(entry.path().string())) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  // Beside traces they are of the same ranks.
  if (!std::all_of(files.begin(), files.end(), IsMemory)) std::erase_if(files, IsMemory);
  return files;
}

void Shift(int64_t by_ns, Trace* trace) {
  if (by_ns == 0) return;
  ForEachTable(*trace, [by_ns](auto& table) {
    for (int64_t& time : table.start) time += time == kUntimed ? 0 : by_ns;
    for (int64_t& time : table.end) time += time == kUntimed ? 0 : by_ns;
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
    if (trace.origin != TraceOrigin::kCapture) {
      base = std::min(base.value_or(trace.base_time_ns), trace.base_time_ns);
    }
  }
  for (Trace& trace : *traces) {
    if (trace.origin == TraceOrigin::kCapture) continue;
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
    if (trace.origin == TraceOrigin::kCapture) continue;
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
      run->problems.push_back(trace.path + ": says it is rank " + std::to_string(at->first) +
                              ", as " + at->second.first + " does");
    }
  }
  if (windows > 0) {
    run->traces.front().info.notes.push_back(
        "with the others: " + std::to_string(windows) +
        " of the files are later windows of a process that is here already; each has its own row");
  }
}

Result<Run> LoadForeign(const std::vector<std::string>& paths) {
  auto loaded = LoadInParallel(paths, &LoadFile);
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
  NameRanks(&run);
  ShareOneBase(&run.traces);
  std::stable_sort(run.traces.begin(), run.traces.end(), [](const Trace& a, const Trace& b) {
    return std::tuple(a.info.rank.value_or(kNone), a.path) <
           std::tuple(b.info.rank.value_or(kNone), b.path);
  });
  return run;
}

}  // namespace

std::optional<uint32_t> RankInName(const std::string& path) {
  static const std::regex kRank("rank[-_.]?([0-9]{1,7})", std::regex::icase);
  const std::string name = fs::path(path).filename().string();
  std::optional<uint32_t> rank;
  for (std::sregex_iterator at(name.begin(), name.end(), kRank), end; at != end; ++at) {
    rank = static_cast<uint32_t>(std::stoul((*at)[1]));
  }
  return rank;
}

FileKind KindOf(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return FileKind::kUnknown;
  char head[64] = {};
  const std::string_view text(head, source->Read(head, sizeof head));
  if (text.starts_with("SQLite format 3")) return FileKind::kNsys;
  // A pickle of protocol 2 or later.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
    return FileKind::kMemorySnapshot;
  }
  constexpr std::string_view kSpace = " \t\r\n\xef\xbb\xbf";
  const size_t first = text.find_first_not_of(kSpace);
  if (first != text.npos && text[first] == '[') {
    const size_t second = text.find_first_not_of(kSpace, first + 1);
    if (second != text.npos && text[second] == '[') return FileKind::kMemoryTimeline;
  }
  if (first != text.npos && (text[first] == '{' || text[first] == '[')) return FileKind::kKineto;
  return FileKind::kTrace;
}

Result<std::vector<Trace>> LoadFile(const std::string& path) {
  const FileKind kind = KindOf(path);
  if (kind == FileKind::kNsys) return ImportNsys(path);
  Result<Trace> trace = kind == FileKind::kKineto           ? ImportKineto(path)
                        : kind == FileKind::kMemorySnapshot ? ImportMemorySnapshot(path)
                        : kind == FileKind::kMemoryTimeline ? ImportMemoryTimeline(path)
                                                            : LoadTrace(path);
  if (!trace) return Failure{trace.message()};
  std::vector<Trace> traces;
  traces.push_back(std::move(*trace));
  return traces;
}

namespace {

// What to say of a directory without any file that is read.
std::string NothingIn(const std::string& directory) {
  std::string text = directory + ": no file of ranktap, torch.profiler, nsys or PyTorch's memory " +
                     "profiler in it";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string inside = entry.path().string();
    if (!entry.is_directory(error)) continue;
    const Result<RunFiles> files = FindTraces(inside);
    if ((files && !files->traces.empty()) || !ForeignFilesIn(inside).empty()) {
      return text + "; " + inside + " has some: name that";
    }
  }
  return text;
}

}  // namespace

Result<Run> OpenRun(const std::vector<std::string>& paths) {
  if (paths.empty()) return Failure{"no file or run is named"};
  if (paths.size() > 1) return LoadForeign(paths);
  std::error_code error;
  if (!fs::is_directory(paths[0], error)) {
    if (!paths[0].ends_with(".trace") && fs::is_regular_file(paths[0], error) &&
        fs::file_size(paths[0], error) == 0) {
      return Failure{paths[0] + ": is empty"};
    }
    return IsForeign(paths[0]) ? LoadForeign(paths) : LoadRun(paths[0]);
  }
  const Result<RunFiles> files = FindTraces(paths[0]);
  if (files && !files->traces.empty()) return LoadRun(paths[0]);
  const std::vector<std::string> foreign = ForeignFilesIn(paths[0]);
  if (!foreign.empty()) return LoadForeign(foreign);
  if (!fs::exists(fs::path(paths[0]) / "run.json", error)) return Failure{NothingIn(paths[0])};
  return LoadRun(paths[0]);
}

}  // namespace ranktap::collector
