// The queue's length, whether all of it is held or what waits alone.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "collector/report/reports.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

constexpr int kMany = 70'000;  // more than the table holds of launches that come by time

// Launches in pairs, 5 us ahead of the device, which takes 10 us a pair: the queue is 0, 1 or 2.
// `swapped`: the launches of the last pair are not in their order.
InsightProgram Pairs(int launches, bool swapped) {
  InsightProgram program(1);
  for (int64_t i = 0; i < launches; ++i) {
    const int64_t at = i / 2 * 10 * kUs;
    const int64_t later = (i % 2 == 1) != (swapped && i >= launches - 2) ? kUs : 0;
    program.rank(0).AddKernel({.launched = at + later,
                               .start = at + 5 * kUs + i % 2 * 2 * kUs,
                               .end = at + 6 * kUs + i % 2 * 2 * kUs,
                               .launch_ns = 500});
  }
  return program;
}

void ExpectPairs(int launches, const Table& table) {
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "count"), 2 * launches);
  // After the launches 1 and 2, after the begins 1 and 0.
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "mean"), 1.0);
  EXPECT_NEAR(CellAt<double>(table, 0, "std"), 0.7071, 1e-3);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "min"), 0.0);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "max"), 2.0);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "p50"), 1.0);
}

TEST(Queue, IsCountedAfterEachLaunchAndBegin) {
  for (const int launches : {400, kMany}) {
    InsightProgram program = Pairs(launches, false);
    ExpectPairs(launches, TabulateQueue(program.run(), {}));
  }
}

TEST(Queue, IsTheSameWhereALateLaunchComesBeforeAnEarlierOne) {
  for (const int launches : {400, kMany}) {
    InsightProgram program = Pairs(launches, true);
    ExpectPairs(launches, TabulateQueue(program.run(), {}));
  }
}

TEST(Queue, IsFullWhile1024LaunchesWait) {
  InsightProgram program(1);
  // All are launched within 70 ms; the device begins with the first after 100 ms, one each us.
  for (int64_t i = 0; i < kMany; ++i) {
    program.rank(0).AddKernel({.launched = i * kUs,
                               .start = 100 * kMs + i * kUs,
                               .end = 100 * kMs + i * kUs + 500,
                               .launch_ns = 500});
  }
  const Table table = TabulateQueue(program.run(), {});
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "max"), kMany);
  // From the launch of the 1,024th to the begin of the one that leaves 1,023.
  EXPECT_EQ(CellAt<int64_t>(table, 0, "full_ns"), 100 * kMs + (kMany - 1'024) * kUs - 1'023 * kUs);
}

}  // namespace
}  // namespace ranktap::collector
