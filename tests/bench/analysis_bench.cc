// How fast traces are loaded and analysed, on one core: our own files, torch.profiler's JSON, and
// every analysis on ten million events. Leaves DIRECTORY/run64 (64 ranks of a million events, whose
// collectives are matched) and DIRECTORY/run1 for scripts/bench, which times `ranktap report` on
// them.
// Usage: analysis_bench DIRECTORY
//        analysis_bench --kineto FILE, prints the seconds that reading a trace of torch.profiler
//        takes
//        analysis_bench --load FILE, prints the user and the system seconds of each of nine loads
//        of an own trace, for a profiler to look at analysis_bench --own FILE, what is measured of
//        our own traces alone; FILE is made where it is not there, and stays
//        analysis_bench --graph FILE, the seconds of loading it, of its graph and of a replay, for
//        a profiler
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "collector/export/exporter.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/import/importers.h"
#include "collector/report/report.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/pages_ahead.h"
#include "tests/bench/figure.h"
#include "tests/bench/training_trace.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;

constexpr uint64_t kEvents = 10'000'000, kRankEvents = 1'000'000;
constexpr uint32_t kRanks = 64;

// Those that the target of 1.5 s is about.
constexpr std::string_view kCore[] = {"kernels",   "apis",     "ranges", "copies",
                                      "syncs",     "launches", "queue",  "steps",
                                      "waterfall", "idle",     "overlap"};

double Resident() {
  std::ifstream status("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  status >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Seconds of reading the file's bytes into memory.
double ReadSeconds(const std::string& path) {
  std::vector<char> bytes(1 << 20);
  return LeastCpuSeconds(3, [&] {
    const int file = ::open(path.c_str(), O_RDONLY);
    for (ssize_t got = 1; got > 0;) {
      got = ::read(file, bytes.data(), bytes.size());
      Keep(std::memchr(bytes.data(), '\xfe', bytes.size()));
    }
    ::close(file);
  });
}

// Seconds of writing as many bytes of memory for the first time, taken from the kernel as the
// loader takes them.
double NewMemorySeconds(double bytes) {
  return LeastCpuSeconds(3, [bytes] {
    constexpr size_t kPiece = 128 << 10;
    const auto size = static_cast<size_t>(bytes);
    auto* const memory = static_cast<char*>(std::malloc(size));
    PagesAhead pages;
    for (size_t at = 0; at < size; at += kPiece) {
      pages.Prepare(memory, at, size);
      std::memset(memory + at, 1, std::min(kPiece, size - at));
    }
    Keep(memory);
    std::free(memory);
  });
}

Trace Load(const std::string& path) {
  Result<Trace> trace = LoadTrace(path);
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.message().c_str());
    std::exit(1);
  }
  return std::move(*trace);
}

void MeasureKineto(const std::string& directory) {
  const std::string small = directory + "/small.trace", json = directory + "/small.json";
  { const TrainingTrace written(small, kRankEvents); }
  uint64_t events = 0;
  {
    Run run;
    run.traces.push_back(Load(small));
    const std::vector<const Trace*> traces = {&run.traces[0]};
    if (FindExporter("chrome")->write(run, traces, {}, json)) std::abort();
  }
  const double seconds = LeastCpuSeconds(2, [&] {
    const Result<std::vector<Trace>> traces = ImportKineto(json);
    if (!traces) std::abort();
    events = traces->front().events;
  });
  const double floor = ReadSeconds(json);
  Print({.name = "load Kineto JSON, one core",
         .value = static_cast<double>(events) / seconds / 1e6,
         .unit = "M events/s",
         .floor_name = "reading its bytes",
         .floor = static_cast<double>(events) / floor / 1e6,
         .target = 1.5,
         .at_least = true,
         .note = std::to_string(std::filesystem::file_size(json) / seconds / 1e6) + " MB/s"});
  std::filesystem::remove(small);
  std::filesystem::remove(json);
}

// Seconds of reading and writing each column of *trace once.
double CopySeconds(Trace* trace) {
  Kernels& kernels = trace->kernels;
  ApiCalls& calls = trace->api_calls;
  std::vector<char> to(std::max(kernels.size(), calls.size()) * 8);
  return LeastCpuSeconds(3, [&] {
    const auto copy = [&to](const auto& column) {
      std::memcpy(to.data(), column.data(), column.size() * sizeof(column[0]));
      Keep(to.data());
    };
    copy(kernels.start.array()), copy(kernels.end.array());
    copy(kernels.launch), copy(kernels.name.array());
    copy(calls.start.array()), copy(calls.end.array());
    copy(calls.api.array()), copy(calls.writer);
  });
}

void MeasureAnalyses(const std::string& path) {
  const double earlier = LeastCpuSeconds(2, [&path] { Keep(Load(path).events); });
  ::malloc_trim(0);
  const double before = Resident();
  Run run;
  const double load = std::min(earlier, CpuSecondsOf([&] { run.traces.push_back(Load(path)); }));
  ::malloc_trim(0);
  const double bytes = Resident() - before;
  const Trace& trace = run.traces[0];
  const auto events = static_cast<double>(trace.events);
  Print({.name = "load own trace, one core",
         .value = events / load / 1e6,
         .unit = "M events/s",
         .floor_name = "reading its bytes, writing as much new memory as it holds",
         .floor = events / (ReadSeconds(path) + NewMemorySeconds(bytes)) / 1e6,
         .target = 30,
         .at_least = true,
         .note = std::to_string(std::filesystem::file_size(path) / events) + " B each"});
  Print({.name = "resident, loaded own trace",
         .value = bytes / events,
         .unit = "B/event",
         .floor_name = "",
         .target = 40});
  // The core first: what analyses share is counted with the first that asks for it.
  double core = load, others = 0;
  for (const bool in_core : {true, false}) {
    for (const Report& analysis : AllReports()) {
      const bool is_core = std::ranges::find(kCore, analysis.name) != std::end(kCore);
      if (analysis.compare != nullptr || is_core != in_core) continue;
      const double seconds = CpuSecondsOf([&] { Keep(analysis(run).rows.size()); });
      (is_core ? core : others) += seconds;
      Print({.name = "10 M events: " + std::string(analysis.name),
             .value = seconds,
             .unit = "s",
             .floor_name = ""});
    }
  }
  Memo::Count facts = run.memo.CountValues();
  const Memo::Count of_trace = trace.memo.CountValues();
  facts.made += of_trace.made, facts.kept += of_trace.kept;
  Print({.name = "10 M events: facts that all analyses made",
         .value = static_cast<double>(facts.made),
         .unit = "facts",
         .floor_name = "those they kept: each is made once",
         .floor = static_cast<double>(facts.kept),
         .target = static_cast<double>(facts.kept)});
  const double graph = CpuSecondsOf([&] { Keep(JobGraphOf(run).graph.size()); });
  Print({.name = "10 M events: the graph that whatif replays, one core",
         .value = graph,
         .unit = "s",
         .floor_name = "loading them",
         .floor = load,
         .target = 3 * load});
  // The columns once more, and the timeline that nearly all of them walk.
  const double floor =
      ReadSeconds(path) + NewMemorySeconds(bytes) + CopySeconds(&run.traces[0]) +
      NewMemorySeconds(static_cast<double>(DeviceTimeline(trace).size()) * sizeof(DeviceSpan));
  Print({.name = "10 M events: load, sort and the core analyses, one core",
         .value = core,
         .unit = "s",
         .floor_name = "reading, new memory for columns and timeline, copying the columns",
         .floor = floor,
         .target = 1.5});
  Print({.name = "10 M events: all other analyses, one core",
         .value = others,
         .unit = "s",
         .floor_name = "the same",
         .floor = floor,
         .target = 10});
}

void LoadForAProfiler(const std::string& path) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  for (int i = 0; i < 9; ++i) {
    rusage before, after;
    ::getrusage(RUSAGE_SELF, &before);
    const Trace trace = Load(path);
    ::getrusage(RUSAGE_SELF, &after);
    std::printf("%.3f user %.3f system\n", seconds(after.ru_utime) - seconds(before.ru_utime),
                seconds(after.ru_stime) - seconds(before.ru_stime));
  }
}

void GraphForAProfiler(const std::string& path) {
  for (int i = 0; i < 3; ++i) {
    Run run;
    const double load = CpuSecondsOf([&] { run.traces.push_back(Load(path)); });
    Keep(StepsOnDevice(run.traces[0]).list.size());
    Keep(MatchCollectives(run).size());
    const double make = CpuSecondsOf([&] { Keep(JobGraphOf(run).graph.size()); });
    const TimedGraph& graph = JobGraphOf(run).graph;
    const double replay = CpuSecondsOf([&] { Keep(Replay(graph, GraphEdit(graph)).end.back()); });
    std::printf("%.3f load %.3f graph %.3f replay\n", load, make, replay);
  }
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  using namespace ranktap::bench;
  ranktap::collector::KeepLargeBlocks();  // as report, export and merge do
  if (argc == 3 && std::string_view(argv[1]) == "--kineto") {
    const std::string file = argv[2];
    std::printf("%.6f\n", LeastCpuSeconds(9, [&file] {
                  if (!ranktap::collector::ImportKineto(file)) std::abort();
                }));
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--load") {
    LoadForAProfiler(argv[2]);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--graph") {
    GraphForAProfiler(argv[2]);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--own") {
    if (!std::filesystem::exists(argv[2])) {
      const TrainingTrace written(argv[2], kEvents);
    }
    MeasureAnalyses(argv[2]);
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: analysis_bench DIRECTORY | --kineto FILE | --own FILE\n");
    return 2;
  }
  const std::string directory = argv[1];
  MeasureKineto(directory);
  const std::string large = directory + "/large.trace";
  { const TrainingTrace written(large, kEvents); }
  MeasureAnalyses(large);
  std::filesystem::remove(large);
  for (const auto& [run, ranks] : {std::pair("/run1", 1u), std::pair("/run64", kRanks)}) {
    std::filesystem::create_directory(directory + run);
    TrainingTrace::WriteJob(directory + run, ranks, kRankEvents);
  }
  return 0;
}
