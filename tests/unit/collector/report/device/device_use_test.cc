// Copies, waits of the host and use of the devices on a job whose answers are known.
#include <gtest/gtest.h>

#include "collector/report/device/usage_summary.h"
#include "collector/report/reports.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

TEST(Copies, BytesTimeAndBandwidthOfAllRanks) {
  SyntheticJob job({.ranks = 3, .steps = 5});
  const Table table = TabulateCopies(job.run());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "name"), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 15);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_ns"), 15 * 20'000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_bytes"), 15 * 400'000);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "gb_per_s"), 20);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "alone_ns"), 15 * 20'000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "host_ns"), 15 * 200);
}

// A file may say how fast a copy was and not how much it was.
TEST(Copies, GbPerSecondWithoutBytesAreKeptAndBytesAreMissing) {
  SyntheticJob job({.ranks = 1, .steps = 5});
  Copies& copies = job.run().traces[0].copies;
  for (size_t i = 0; i < copies.size(); ++i) {
    copies.bytes[i] = 0;
    copies.bytes_unknown.push_back(1);
    copies.reported_bandwidth.push_back(12.5);
  }
  const Table table = TabulateCopies(job.run());
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "gb_per_s"), 12.5);
  const auto is_missing = [](const Table& of, const std::string& column) {
    return std::holds_alternative<std::monostate>(of.rows[0][ColumnNamed(of, column)]);
  };
  EXPECT_TRUE(is_missing(table, "total_bytes"));
  const Table each = TabulateBandwidth(job.run(), {});
  EXPECT_EQ(CellAt<int64_t>(each, 0, "count"), 5);
  EXPECT_DOUBLE_EQ(CellAt<double>(each, 0, "mean_gb_per_s"), 12.5);
  EXPECT_TRUE(is_missing(each, "total_bytes"));
}

TEST(Syncs, TheDevicesIdleTimeAfterAWaitIsTheHostsTimeToTheNextLaunch) {
  SyntheticJob job({.ranks = 2, .steps = 6});
  const Table table = TabulateSyncs(job.run());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "call"), "cudaStreamSynchronize");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 12);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "per_step"), 1);
  // After the last one nothing more ran.
  EXPECT_EQ(CellAt<int64_t>(table, 0, "idle_after_ns"), 2 * 5 * (50'000 + 40'000 + 5'000));
}

TEST(Syncs, EachLineOfTheProgramThatWaitsHasARow) {
  InsightProgram program;
  program->AddOperator("aten::item", 0, 40 * kUs, "train.py(12): step;train.py(40): main");
  program->AddCall("cudaStreamSynchronize", 5 * kUs, 35 * kUs);
  program->AddOperator("aten::item", 100 * kUs, 120 * kUs, "train.py(31): log;train.py(40): main");
  program->AddCall("cudaStreamSynchronize", 105 * kUs, 115 * kUs);
  program->AddOperator("aten::item", 200 * kUs, 240 * kUs, "train.py(12): step");
  program->AddCall("cudaStreamSynchronize", 205 * kUs, 235 * kUs);
  const Table table = TabulateSyncs(program.run(), {});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "line"), "train.py(12): step");
  EXPECT_EQ(CellAt<std::string>(table, 0, "operator"), "aten::item");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 2);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_ns"), 60 * kUs);
  EXPECT_EQ(CellAt<std::string>(table, 1, "line"), "train.py(31): log");
}

TEST(Usage, IsMegEnginesRatioOfTheUnionOfKernelsToTheirSpan) {
  JobShape shape{.ranks = 1, .layers = 2, .steps = 4};
  SyntheticJob job(shape);
  const Table table = TabulateUsage(job.run());
  ASSERT_EQ(table.rows.size(), 1u);
  const double kernels = 4.0 * 2 * (200'000 + 80'000);
  const double train = kernels + 4.0 * (4 - 1) * 1'000;            // the gaps between them
  const double before = 50'000 + 40'000 + 5'000 + 20'000 + 1'000;  // of a step, its first kernel
  const double span = static_cast<double>(job.total_ns()) - before;
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "gpu_usage_ratio"), 100 * kernels / span);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "train_time_ratio"), 100 * train / span);
}

TEST(Usage, TheWindowsAverageToTheWhole) {
  SyntheticJob job({.ranks = 2, .steps = 9, .jitter_ns = 40'000});
  const Table whole = TabulateUsage(job.run());
  const Table windows = TabulateUsageOverTime(job.run());
  ASSERT_EQ(windows.rows.size(), 2 * static_cast<size_t>(kUsageWindows));
  for (size_t rank = 0; rank < 2; ++rank) {
    double busy = 0, span = 0;
    for (size_t i = 0; i < static_cast<size_t>(kUsageWindows); ++i) {
      const size_t row = rank * static_cast<size_t>(kUsageWindows) + i;
      const auto length = static_cast<double>(CellAt<int64_t>(windows, row, "end_ns") -
                                              CellAt<int64_t>(windows, row, "start_ns"));
      busy += length * CellAt<double>(windows, row, "gpu_usage_ratio");
      span += length;
    }
    EXPECT_NEAR(busy / span, CellAt<double>(whole, rank, "gpu_usage_ratio"), 1e-9);
  }
}

// Computation of the synthetic job never runs beside communication; here one kernel is drawn out
// over half of the all-reduce that follows it.
TEST(Usage, TheWindowsTellComputationFromCommunicationAndWhatRunsAtOnce) {
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 1});
  TimeColumn& end = job.run().traces[0].kernels.end;
  end.Set(0, end[0] + 1'000 + 40'000);
  const Table table = TabulateUsageOverTime(job.run());
  double compute = 0, comm = 0, exposed = 0, busy = 0, overlapped = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto length = static_cast<double>(CellAt<int64_t>(table, row, "end_ns") -
                                            CellAt<int64_t>(table, row, "start_ns"));
    const double communicates = length * CellAt<double>(table, row, "comm_percent") / 100;
    busy += length * CellAt<double>(table, row, "busy_percent") / 100;
    compute += length * CellAt<double>(table, row, "compute_percent") / 100;
    comm += communicates;
    exposed += length * CellAt<double>(table, row, "exposed_comm_percent") / 100;
    const auto& overlap = table.rows[row][ColumnNamed(table, "overlap_percent")];
    EXPECT_EQ(communicates > 0, std::holds_alternative<double>(overlap));
    if (communicates > 0) overlapped += communicates * std::get<double>(overlap) / 100;
  }
  EXPECT_NEAR(busy, 200'000 + 1'000 + 80'000, 1e-6);
  EXPECT_NEAR(compute, 200'000 + 1'000 + 40'000, 1e-6);
  EXPECT_NEAR(comm, 80'000, 1e-6);
  EXPECT_NEAR(exposed, 40'000, 1e-6);
  EXPECT_NEAR(overlapped, 40'000, 1e-6);
}

TEST(Steps, AreThoseOfTheRangeThatIsNamedLikeOne) {
  SyntheticJob job({.ranks = 2, .layers = 2, .steps = 7});
  const Table table = TabulateSteps(job.run());
  ASSERT_EQ(table.rows.size(), 14u);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(CellAt<int64_t>(table, row, "kernels"), 4);
    EXPECT_EQ(CellAt<int64_t>(table, row, "total_ns"), job.total_ns() / 7);
    EXPECT_EQ(CellAt<int64_t>(table, row, "gpu_ns"), 20'000 + 2 * (200'000 + 80'000));
  }
}

}  // namespace
}  // namespace ranktap::collector
