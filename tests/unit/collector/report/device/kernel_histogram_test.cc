// Bins of kernels' durations on a job whose answers are known.
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

TEST(KernelHistogram, CountsEachKernelsCallsBetweenEdgesOfOneTwoAndFive) {
  SyntheticJob job({.ranks = 2, .layers = 1, .steps = 5});
  Kernels& kernels = job.run().traces[0].kernels;  // gemm: 199'999 ns ends below the edge
  kernels.end.Set(0, kernels.end[0] - 1);
  const Table table = TabulateKernelHistogram(job.run());
  ASSERT_EQ(table.rows.size(), 3u);
  const int64_t expected[][4] = {{100'000, 200'000, 1, 199'999},
                                 {200'000, 500'000, 9, 9 * 200'000},
                                 {50'000, 100'000, 10, 10 * 80'000}};
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(CellAt<std::string>(table, row, "name") == "gemm", row < 2);
    EXPECT_EQ(CellAt<int64_t>(table, row, "bin_from_ns"), expected[row][0]);
    EXPECT_EQ(CellAt<int64_t>(table, row, "bin_to_ns"), expected[row][1]);
    EXPECT_EQ(CellAt<int64_t>(table, row, "calls"), expected[row][2]);
    EXPECT_EQ(CellAt<int64_t>(table, row, "total_ns"), expected[row][3]);
  }
}

}  // namespace
}  // namespace ranktap::collector
