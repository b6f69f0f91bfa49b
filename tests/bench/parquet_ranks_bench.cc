// A data set as weeks of runs make it, 8 runs of 8 ranks with a million kernels each, for engines
// that scripts/bench lets read it: DIRECTORY/kernels/run=week-W/rank=R.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collector/export/exporter.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/run.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;

constexpr uint32_t kRuns = 8, kRanks = 8, kKernels = 1'000'000, kNames = 48;
constexpr int64_t kWeek = int64_t{7} * 24 * 3600 * 1'000'000'000,
                  kFirst = 1'700'000'000'000'000'000;

// Lengths of 1 to 5 us and gaps of up to 1 us, by a generator that is the same everywhere.
Trace TraceOfRank(uint32_t run, uint32_t rank) {
  Trace trace;
  trace.path = "rank-" + std::to_string(rank);
  trace.info.rank = rank;
  trace.info.world_size = kRanks;
  trace.lanes.push_back({.device = 0, .context = 1, .stream = 7});
  uint32_t names[kNames];
  for (uint32_t i = 0; i < kNames; ++i) {
    names[i] = trace.dictionary.AppendString("void at::native::kernel_of_a_layer<float, " +
                                             std::to_string(i) + ">(float const*, float*, int)");
  }
  const uint32_t shape = trace.dictionary.AppendShape({});
  uint64_t random = 88172645463325252ULL + run * kRanks + rank;
  int64_t now = kFirst + run * kWeek;
  Kernels& kernels = trace.kernels;
  for (uint32_t i = 0; i < kKernels; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const auto length = static_cast<int64_t>(1000 + random % 4000);
    kernels.start.push_back(now);
    kernels.end.push_back(now + length);
    kernels.correlation.push_back(i + 1);
    kernels.lane.push_back(0);
    kernels.launch.push_back(kNone);
    kernels.name.push_back(names[random % kNames]);
    kernels.shape.push_back(shape);
    now += length + static_cast<int64_t>(random >> 54);
  }
  trace.first_ns = kernels.start[0];
  trace.last_ns = now;
  trace.events = kKernels;
  return trace;
}

void Export(uint32_t week, const std::string& directory, double* seconds) {
  collector::Run run;
  run.path = "week-" + std::to_string(week);
  for (uint32_t rank = 0; rank < kRanks; ++rank) run.traces.push_back(TraceOfRank(week, rank));
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) traces.push_back(&trace);
  *seconds += CpuSecondsOf([&] {
    if (const auto failure = FindExporter("parquet")->write(run, traces, {}, directory)) {
      std::fprintf(stderr, "parquet_ranks_bench: %s\n", failure->message.c_str());
      std::exit(1);
    }
  });
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  using namespace ranktap::bench;
  ranktap::collector::KeepLargeBlocks();  // as export does
  if (argc != 2) {
    std::fprintf(stderr, "usage: parquet_ranks_bench DIRECTORY\n");
    return 2;
  }
  double seconds = 0;
  for (uint32_t week = 0; week < kRuns; ++week) Export(week, argv[1], &seconds);
  Print({.name = "export of 64 x 1 M kernels to parquet, CPU",
         .value = seconds,
         .unit = "s",
         .floor_name = "",
         .note = "8 runs of 8 ranks"});
  return 0;
}
