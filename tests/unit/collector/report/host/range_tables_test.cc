// Ranges, what they launch and how they nest, and launches by kernel, on a job whose answers are
// known.
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

void AddRange(Trace* trace, int64_t start, int64_t end, uint32_t name, uint16_t writer,
              RangeKind kind = RangeKind::kPushPop) {
  trace->ranges.start.push_back(start);
  trace->ranges.end.push_back(end);
  trace->ranges.name.push_back(name);
  trace->ranges.domain.push_back(0);
  trace->ranges.writer.push_back(writer);
  trace->ranges.depth.push_back(0);
  trace->ranges.kind.push_back(static_cast<uint8_t>(kind));
}

TEST(RangeKernels, AreThoseThatItsThreadLaunchedWhileItWasOpen) {
  SyntheticJob job({.ranks = 2, .layers = 3, .steps = 5});
  const Table table = TabulateRangeKernels(job.run());
  ASSERT_EQ(table.rows.size(), 2u);  // the loader launches nothing
  const size_t gemm = RowWith(table, "kernel", std::string("gemm"));
  EXPECT_EQ(CellAt<std::string>(table, gemm, "range"), "train_step");
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "calls"), 2 * 5 * 3);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "total_ns"), 2 * 5 * 3 * 200'000);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "median_ns"), 200'000);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "stddev_ns"), 0);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "range_calls"), 2 * 5);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "ranks"), 2);
}

TEST(RangeKernels, CountOnceThoughRangesOfANameNestAndNotOnOtherThreads) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 1});
  Trace& trace = job.run().traces[0];
  trace.writers.emplace_back().thread = 200;
  trace.ranges = {};
  AddRange(&trace, 0, 1'000'000'000, SyntheticJob::kStepName, 0);
  AddRange(&trace, 1, 999'999'999, SyntheticJob::kStepName, 0);
  AddRange(&trace, 1, 999'999'999, SyntheticJob::kDataName, 1);
  const Table table = TabulateRangeKernels(job.run());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "range"), "train_step");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 1);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "range_calls"), 2);
}

TEST(RangeKernels, WithoutTimesCountAsCalls) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 1});
  Kernels& kernels = job.run().traces[0].kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels.start.Set(i, kUntimed), kernels.end.Set(i, kUntimed);
  }
  const Table table = TabulateRangeKernels(job.run());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 1);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_ns"), 0);
  EXPECT_FALSE(table.notes.empty());
}

TEST(RangeKernels, OfARangeOpenAtTheEndAreThoseLaunchedUntilThen) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 2});
  Trace& trace = job.run().traces[0];
  // Begun with the second step; the recorder gave it the trace's end.
  const int64_t end = trace.ranges.end.back();
  trace.ranges = {};
  AddRange(&trace, end - job.total_ns() / 2, end, SyntheticJob::kStepName, 0);
  trace.ranges.unfinished.push_back(1);
  const Table table = TabulateRangeKernels(job.run());
  const size_t gemm = RowWith(table, "kernel", std::string("gemm"));
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "calls"), 1);
  EXPECT_EQ(CellAt<int64_t>(table, gemm, "range_calls"), 1);
}

TEST(RangeKernels, AreTheSameForEachOfManyRangesAroundThem) {
  constexpr uint32_t kDepth = 300;
  SyntheticJob job({.ranks = 1, .layers = 2, .steps = 3});
  Trace& trace = job.run().traces[0];
  trace.ranges = {};
  for (uint32_t i = 0; i < kDepth; ++i) {
    const uint32_t name = trace.dictionary.AppendString("level " + std::to_string(i));
    AddRange(&trace, i, 1'000'000'000 - i, name, 0);
  }
  const Table table = TabulateRangeKernels(job.run());
  ASSERT_EQ(table.rows.size(), 2 * kDepth);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(CellAt<int64_t>(table, row, "calls"), 2 * 3) << row;
    EXPECT_EQ(CellAt<int64_t>(table, row, "range_calls"), 1) << row;
  }
}

TEST(RangeKernels, LeaveOutGraphsTracedAsAWholeAndSaySo) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 2});
  Trace& trace = job.run().traces[0];
  EXPECT_TRUE(TabulateRangeKernels(job.run()).notes.empty());
  const uint32_t launch = trace.kernels.launch[0];
  trace.graph_launches.launch.push_back(launch);
  trace.graph_launches.launch.push_back(kNone);
  const Table table = TabulateRangeKernels(job.run());
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(table.notes[0].starts_with("1 graphs launched within a range")) << table.notes[0];
}

TEST(RangeProjection, IsFromTheFirstWorkToTheLastOnesEnd) {
  SyntheticJob job({.ranks = 2, .layers = 3, .steps = 5});
  const Table table = TabulateRangeProjection(job.run());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "name"), "train_step");
  const int64_t work = 20'000 + 3 * (200'000 + 80'000);
  const int64_t gaps = 3 * 2 * 1'000;
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 10);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "gpu_ops"), 10 * 7);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "gpu_ns"), 10 * work);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "projected_ns"), 10 * (work + gaps));
  EXPECT_EQ(CellAt<int64_t>(table, 0, "median_ns"), work + gaps);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "host_ns"), 2 * job.total_ns());
}

TEST(RangeTrace, SelfTimeIsWithoutTheRangesDirectlyBelow) {
  SyntheticJob job({.ranks = 1, .steps = 2});
  const Table table = TabulateRangeTrace(job.run());
  ASSERT_EQ(table.rows.size(), 4u);
  const int64_t step = job.total_ns() / 2;
  for (const size_t row : {0u, 2u}) {
    EXPECT_EQ(CellAt<std::string>(table, row, "name"), "train_step");
    EXPECT_EQ(CellAt<int64_t>(table, row, "level"), 0);
    EXPECT_EQ(CellAt<int64_t>(table, row, "children"), 1);
    EXPECT_EQ(CellAt<int64_t>(table, row, "self_ns"), step - 50'000);
    EXPECT_EQ(CellAt<int64_t>(table, row + 1, "level"), 1);
    EXPECT_EQ(CellAt<int64_t>(table, row + 1, "self_ns"), 50'000);
    EXPECT_EQ(CellAt<int64_t>(table, row + 1, "parent_id"), CellAt<int64_t>(table, row, "id"));
    EXPECT_EQ(CellAt<int64_t>(table, row, "projected_start_ns"),
              static_cast<int64_t>(row / 2) * step + 50'000 + 40'000 + 5'000);
  }
  const Table ranges = TabulateRanges(job.run());
  EXPECT_EQ(CellAt<int64_t>(ranges, 0, "self_ns"), 2 * (step - 50'000));
}

TEST(RangeTrace, RangesOfOtherThreadsAndThoseBegunByHandAreNoChildren) {
  SyntheticJob job({.ranks = 1, .steps = 1});
  Trace& trace = job.run().traces[0];
  trace.writers.emplace_back().thread = 200;
  trace.ranges = {};
  AddRange(&trace, 100, 1'000, SyntheticJob::kStepName, 0);
  AddRange(&trace, 200, 900, SyntheticJob::kDataName, 1);
  AddRange(&trace, 300, 800, SyntheticJob::kDataName, 0, RangeKind::kStartEnd);
  AddRange(&trace, 900, 1'100, SyntheticJob::kDataName, 0);  // reaches beyond the first
  const Table table = TabulateRangeTrace(job.run());
  ASSERT_EQ(table.rows.size(), 4u);
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(CellAt<int64_t>(table, row, "level"), 0);
    EXPECT_EQ(CellAt<int64_t>(table, row, "children"), 0);
    EXPECT_EQ(CellAt<int64_t>(table, row, "self_ns"), CellAt<int64_t>(table, row, "total_ns"));
  }
}

TEST(LaunchesByKernel, AreTheCallTheQueueAndTheKernel) {
  SyntheticJob job({.ranks = 2, .layers = 1, .steps = 4});
  const Table table = TabulateLaunchesByKernel(job.run());
  ASSERT_EQ(table.rows.size(), 2u);
  const size_t row = RowWith(table, "name", std::string("gemm"));
  EXPECT_EQ(CellAt<int64_t>(table, row, "calls"), 8);
  EXPECT_EQ(CellAt<int64_t>(table, row, "queued"), 8);
  EXPECT_EQ(CellAt<int64_t>(table, row, "call_ns"), 8 * 200);
  // Launched 300 after the copy, which came kFirstLatency before it ran.
  const int64_t queue = 5'000 + 20'000 + 1'000 - 300 - 200;
  EXPECT_EQ(CellAt<int64_t>(table, row, "queue_ns"), 8 * queue);
  EXPECT_EQ(CellAt<int64_t>(table, row, "queue_median_ns"), queue);
  EXPECT_EQ(CellAt<int64_t>(table, row, "kernel_ns"), 8 * 200'000);
  EXPECT_EQ(CellAt<int64_t>(table, row, "total_ns"), 8 * (200 + queue + 200'000));
}

TEST(LaunchesByKernel, LeaveOutLaunchesOfManyKernelsAndSaySo) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 1});
  Kernels& kernels = job.run().traces[0].kernels;
  kernels.launch[1] = kernels.launch[0];
  const Table table = TabulateLaunchesByKernel(job.run());
  EXPECT_TRUE(table.rows.empty());
  EXPECT_NE(table.notes.back().find("2 kernels"), std::string::npos);
}

}  // namespace
}  // namespace ranktap::collector
