// The k-th instance over ranks, on ranks whose every start is planted.
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "tests/unit/collector/nanoseconds.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

// Four ranks of one host with ten steps of 10 ms, a range of 2 ms in each. Rank 2 begins each step
// 1 ms later than the one before would have it; its steps take 11 ms.
Run RanksOfWhichTwoFallsBehind(const std::string& host) {
  Run run;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Trace& trace = run.traces.emplace_back();
    trace.info.rank = rank;
    trace.info.host = host;
    trace.dictionary.AppendString("train_step");
    trace.dictionary.AppendString("forward");
    trace.writers.emplace_back().thread = 100;
    const int64_t length = rank == 2 ? 11 * kMs : 10 * kMs;
    for (int64_t step = 0; step < 10; ++step) {
      for (const auto& [name, after, ns] :
           {std::tuple(1u, int64_t{0}, length), std::tuple(2u, kMs, 2 * kMs)}) {
        trace.ranges.start.push_back(kMs + step * length + after);
        trace.ranges.end.push_back(kMs + step * length + after + ns);
        trace.ranges.name.push_back(name);
        trace.ranges.domain.push_back(0);
        trace.ranges.writer.push_back(0);
        trace.ranges.depth.push_back(name == 1 ? 0 : 1);
        trace.ranges.kind.push_back(static_cast<uint8_t>(RangeKind::kPushPop));
      }
    }
    trace.first_ns = kMs;
    trace.last_ns = kMs + 10 * length;
  }
  return run;
}

TEST(Pace, EachStepHasItsSpreadAndTheRankThatFallsBehindIsNamed) {
  const Table table = TabulatePace(RanksOfWhichTwoFallsBehind("a"));
  ASSERT_EQ(table.rows.size(), 10u);
  for (size_t k = 0; k < 10; ++k) {
    const auto step = static_cast<int64_t>(k);
    EXPECT_EQ(CellAt<int64_t>(table, k, "ranks"), 4);
    EXPECT_EQ(CellAt<int64_t>(table, k, "start_ns"), step * 10 * kMs);
    EXPECT_EQ(CellAt<int64_t>(table, k, "spread_ns"), step * kMs);
    EXPECT_EQ(CellAt<int64_t>(table, k, "mean_ns"), 41 * kMs / 4);
    EXPECT_EQ(CellAt<int64_t>(table, k, "min_ns"), 10 * kMs);
    EXPECT_EQ(CellAt<int64_t>(table, k, "max_ns"), 11 * kMs);
    EXPECT_EQ(CellAt<int64_t>(table, k, "longest_rank"), 2);
    if (k > 0) {
      EXPECT_EQ(CellAt<int64_t>(table, k, "last_rank"), 2);
    }
  }
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_EQ(table.notes[0], "rank 2 falls behind the first by 1.000 ms more with each instance");
}

TEST(Pace, ARangeIsCountedByItsNameOrAPartOfIt) {
  for (const char* const name : {"forward", "orwar"}) {
    const Table table = TabulatePace(RanksOfWhichTwoFallsBehind("a"), {.operator_name = name});
    EXPECT_EQ(table.title, "When the ranks begin each 'forward'");
    ASSERT_EQ(table.rows.size(), 10u);
    EXPECT_EQ(CellAt<int64_t>(table, 9, "spread_ns"), 9 * kMs);
    EXPECT_EQ(CellAt<int64_t>(table, 9, "mean_ns"), 2 * kMs);
  }
}

TEST(Pace, ClocksThatAreFarApartAreComparedByTheirCollectives) {
  SyntheticJob job({.steps = 10,
                    .late = {{.rank = 3, .cause = Cause::kHost, .ns = 300'000}},
                    .clocks = {{}, {.offset_ns = 5'000 * kMs}, {.offset_ns = -70 * kMs}, {}}});
  const Table table = TabulatePace(job.run());
  ASSERT_EQ(table.rows.size(), 10u);
  for (size_t k = 0; k < 10; ++k) {
    EXPECT_LT(CellAt<int64_t>(table, k, "spread_ns"), 1'000) << k;  // all wait for rank 3
  }
}

TEST(Pace, WithoutASharedClockTimesAreFromEachRanksOwnFirstInstance) {
  auto run = RanksOfWhichTwoFallsBehind("");
  for (TimeColumn* const times : {&run.traces[1].ranges.start, &run.traces[1].ranges.end}) {
    for (size_t i = 0; i < times->size(); ++i) times->Set(i, (*times)[i] + 7'000 * kMs);
  }
  const Table table = TabulatePace(run);
  ASSERT_EQ(table.rows.size(), 10u);
  EXPECT_EQ(CellAt<int64_t>(table, 9, "spread_ns"), 9 * kMs);
  EXPECT_NE(table.notes.back().find("cannot be compared"), std::string::npos);
}

TEST(Pace, ANameThatIsNotThereIsSaid) {
  const Table table = TabulatePace(RanksOfWhichTwoFallsBehind("a"), {.operator_name = "absent"});
  EXPECT_TRUE(table.rows.empty());
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_EQ(table.notes[0], "no range and no kernel is called 'absent'");
}

}  // namespace
}  // namespace ranktap::collector
