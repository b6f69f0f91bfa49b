#include "collector/export/perfetto/perfetto_exporter.h"
#include "collector/export/exporters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "collector/export/run_clock.h"
#include "tests/unit/collector/export/perfetto/perfetto_reader.h"
#include "tests/unit/collector/export/sample_run.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using testing::IsEmpty;

// Process, category, name, start, end.
using Known = std::tuple<std::string, std::string, std::string, int64_t, int64_t>;

PerfettoContent Export(const Run& run, const ExportOptions& options = {}) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/run.pftrace";
  const auto traces = PointersTo(run);
  const auto failure = WritePerfetto(run, traces, options, path);
  EXPECT_FALSE(failure) << failure->message;
  return ReadPerfetto(ReadFile(path));
}

std::string RangeName(uint32_t id) { return id == 2 ? "forward" : "back/ward \"quoted\" ?"; }

struct Truth {
  std::multiset<Known> slices;
  std::multiset<std::pair<Known, Known>> arrows;
};

Truth TruthOf(const Run& run, const ExportOptions& options = {}) {
  Truth truth;
  for (const Trace& trace : run.traces) {
    const std::string process = "rank " + std::to_string(*trace.info.rank) + ": python3";
    const int64_t shift = RealtimeOffset(run, trace);
    const auto kept = options.Shifted(shift);
    const auto known = [&](std::string_view category, std::string name, int64_t start,
                           int64_t end) {
      return Known{process, category, std::move(name), start + shift, end + shift};
    };
    for (size_t i = 0; i < trace.ranges.size(); ++i) {
      const Ranges& ranges = trace.ranges;
      if (!kept.Keeps(ranges.start[i], ranges.end[i])) continue;
      truth.slices.insert(
          known("user_annotation", RangeName(ranges.name[i]), ranges.start[i], ranges.end[i]));
    }
    for (const int64_t at : trace.marks.start) {
      if (kept.KeepsMoment(at)) {
        truth.slices.insert(known("user_annotation", RangeName(3), at, at));
      }
    }
    std::vector<Known> calls;
    for (size_t i = 0; i < trace.api_calls.size(); ++i) {
      const ApiFunction& api = trace.dictionary.Api(trace.api_calls.api[i]);
      calls.push_back(
          known(api.domain == proto::ApiDomain::kDriver ? "cuda_driver" : "cuda_runtime", api.name,
                trace.api_calls.start[i], trace.api_calls.end[i]));
      if (kept.Keeps(trace.api_calls.start[i], trace.api_calls.end[i])) {
        truth.slices.insert(calls.back());
      }
    }
    const auto add = [&](const DeviceWork& work, const char* category, const char* name) {
      for (size_t i = 0; i < work.size(); ++i) {
        if (!kept.Keeps(work.start[i], work.end[i])) continue;
        const Known slice = known(category, name, work.start[i], work.end[i]);
        truth.slices.insert(slice);
        const uint32_t call = work.launch[i];
        if (kept.Keeps(trace.api_calls.start[call], trace.api_calls.end[call])) {
          truth.arrows.emplace(calls[call], slice);
        }
      }
    };
    add(trace.kernels, "kernel", "gemm(float*, int)");
    add(trace.copies, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)");
  }
  return truth;
}

Known KnownOf(const PerfettoSlice& slice) {
  return {slice.process, slice.category, slice.name, slice.start, slice.end};
}

void ExpectSame(const PerfettoContent& read, const Truth& truth) {
  EXPECT_THAT(read.errors, IsEmpty());
  std::multiset<Known> slices;
  for (const PerfettoSlice& slice : read.slices) slices.insert(KnownOf(slice));
  EXPECT_EQ(slices.size(), truth.slices.size());
  EXPECT_TRUE(slices == truth.slices);
  std::multiset<std::pair<Known, Known>> arrows;
  for (const PerfettoArrow& arrow : read.arrows) {
    arrows.emplace(KnownOf(read.slices[arrow.from]), KnownOf(read.slices[arrow.to]));
    EXPECT_EQ(read.slices[arrow.from].process, read.slices[arrow.to].process);
  }
  EXPECT_EQ(arrows.size(), truth.arrows.size());
  EXPECT_TRUE(arrows == truth.arrows);
}

TEST(PerfettoExporterTest, EverySliceAndArrowOfAllRanksComesBack) {
  for (uint32_t seed : {1, 50, 99}) {
    SCOPED_TRACE(seed);
    const auto run = SampleRun(3, 100, seed);
    ExpectSame(Export(run), TruthOf(run));
  }
}

TEST(PerfettoExporterTest, WindowAndSizeLeaveOutOtherSlicesAndTheirArrows) {
  const auto run = SampleRun(2, 100);
  ExportOptions options;
  options.from = FirstRealtime(run) + 500;
  options.to = options.from + 20000;
  options.min_duration = 15;
  const Truth truth = TruthOf(run, options);
  ASSERT_FALSE(truth.arrows.empty());
  ExpectSame(Export(run, options), truth);
}

TEST(PerfettoExporterTest, ArgumentsComeBack) {
  const auto run = SampleRun(1, 20);
  size_t kernels = 0;
  for (const PerfettoSlice& slice : Export(run).slices) {
    if (slice.category == "user_annotation" && slice.name == RangeName(3) &&
        slice.start != slice.end) {
      EXPECT_EQ(slice.arguments.at("domain"), "lib");
    }
    if (slice.category != "kernel") continue;
    ++kernels;
    EXPECT_EQ(slice.arguments.at("grid"), "4,2,1");
    EXPECT_EQ(slice.arguments.at("block"), "128,1,1");
    EXPECT_EQ(slice.arguments.at("registers per thread"), "32");
    EXPECT_EQ("GPU 0/stream " + slice.arguments.at("stream"),
              slice.track.substr(0, slice.track.find(" (overlapping)")));
  }
  EXPECT_EQ(kernels, run.traces[0].kernels.size());
}

TEST(PerfettoExporterTest, PythonFunctionsAroundOperatorsHaveATrackOfTheirOwn) {
  auto run = SampleRun(1, 1);
  Trace& trace = run.traces[0];
  Operators& ops = trace.operators;
  ops.start.push_back(10);
  ops.end.push_back(20);
  ops.name.push_back(trace.dictionary.AppendString("aten::mm"));
  ops.writer.push_back(0);
  ops.kind.push_back(static_cast<uint8_t>(OperatorKind::kOperator));
  ops.parent.push_back(kNone);
  ops.stack.push_back(trace.dictionary.AppendString("train.py(3): step;train.py(9): main"));
  std::vector<std::string> functions;
  for (const PerfettoSlice& slice : Export(run).slices) {
    if (slice.track.find("Python functions") == std::string::npos) continue;
    functions.push_back(slice.name + " at line " + slice.arguments.at("line"));
    EXPECT_EQ(slice.end - slice.start, 10);
  }
  EXPECT_THAT(functions, testing::UnorderedElementsAre("train.py: main at line 9",
                                                       "train.py: step at line 3"));
}

TEST(PerfettoExporterTest, WorkAsRenderStagesIsTheSameWorkWithItsLaunches) {
  const auto run = SampleRun(3, 100);
  ExportOptions options;
  options.render_stages = true;
  const PerfettoContent read = Export(run, options);
  ExpectSame(read, TruthOf(run));
  size_t kernels = 0;
  for (const PerfettoSlice& slice : read.slices) {
    if (slice.category != "kernel") continue;
    ++kernels;
    EXPECT_EQ(slice.arguments.at("grid"), "4,2,1");
    EXPECT_EQ(slice.arguments.at("registers_per_thread"), "32");
    EXPECT_THAT(slice.track, testing::StartsWith("GPU 0/rank "));
  }
  EXPECT_GT(kernels, 0u);
}

TEST(PerfettoExporterTest, DeviceMemoryIsACounterOfWhatIsAllocated) {
  const auto run = SampleRun(1, 1);
  PerfettoContent read = Export(run);
  std::erase_if(read.counts,
                [](const PerfettoCount& count) { return count.track != "GPU 0/device memory"; });
  ASSERT_EQ(read.counts.size(), run.traces[0].memory.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < read.counts.size(); ++i) {
    bytes += i % 3 == 2 ? -512 : 512;
    EXPECT_EQ(read.counts[i].value, bytes);
  }
}

TEST(PerfettoExporterTest, TimesAndCorrelationsOfEveryLengthComeBack) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  trace.info.rank = 0;
  trace.info.executable = "/usr/bin/python3";
  trace.writers.emplace_back().thread = 1;
  trace.dictionary.AppendApi({.domain = proto::ApiDomain::kRuntime, .cbid = 1, .name = "launch"});
  int64_t at = 1000;
  std::set<std::string> correlations;
  for (int bits = 0; bits < 42; ++bits) {
    for (const int64_t length : {(int64_t{1} << bits) - 1, int64_t{1} << bits}) {
      const auto correlation = static_cast<uint32_t>(length);
      trace.api_calls.start.push_back(at);
      trace.api_calls.end.push_back(at + length);
      trace.api_calls.api.push_back(1);
      trace.api_calls.writer.push_back(0);
      trace.api_calls.correlation.push_back(correlation);
      correlations.insert(std::to_string(correlation));
      at += 2 * length;
    }
  }
  const PerfettoContent read = Export(run);
  ExpectSame(read, TruthOf(run));
  std::set<std::string> found;
  for (const PerfettoSlice& slice : read.slices) found.insert(slice.arguments.at("correlation"));
  EXPECT_EQ(found, correlations);
}

TEST(PerfettoExporterTest, UsageAndPendingWorkAreCountersOfTheDevice) {
  std::set<std::string> tracks;
  for (const PerfettoCount& count : Export(SampleRun(1, 1)).counts) tracks.insert(count.track);
  EXPECT_THAT(tracks, testing::IsSupersetOf({"GPU 0/gpu_usage_ratio", "GPU 0/pending work"}));
}

TEST(PerfettoExporterTest, TheSameBytesEachTime) {
  const auto run = SampleRun(2, 30);
  TemporaryDirectory directory;
  const auto traces = PointersTo(run);
  ASSERT_FALSE(WritePerfetto(run, traces, {}, directory.path() + "/a"));
  ASSERT_FALSE(WritePerfetto(run, traces, {}, directory.path() + "/b"));
  EXPECT_EQ(ReadFile(directory.path() + "/a"), ReadFile(directory.path() + "/b"));
}

}  // namespace
}  // namespace ranktap::collector
