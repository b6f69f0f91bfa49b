// --where, --sort, --ranks and --steps: what they take, and what they say to what they do not.
#include "collector/report/table_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/report/run_filter.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

Table Sample() {
  Table table{.name = "sample",
              .columns = {{"name", Unit::kText},
                          {"total_ns", Unit::kNs},
                          {"bytes", Unit::kBytes},
                          {"compute_ns", Unit::kNs},
                          {"compute_percent", Unit::kPercent},
                          {"held_ns", Unit::kNs},
                          {"held_bytes", Unit::kBytes},
                          {"gpu_busy_percent", Unit::kPercent}}};
  for (int64_t i = 1; i <= 4; ++i) {
    table.rows.push_back(
        {"row " + std::to_string(i), i * 1'000'000, i << 20, i, 10.0 * (4 - i), i, i, 25.0 * i});
  }
  return table;
}
size_t Left(const std::string& condition) {
  Table table = Sample();
  const Result<bool> kept = KeepWhere(condition, &table);
  EXPECT_TRUE(kept.ok()) << kept.message();
  return table.rows.size();
}
std::string Refusal(const std::string& condition) {
  Table table = Sample();
  return KeepWhere(condition, &table).message();
}

TEST(TableFilter, ValuesMayCarryTheirUnit) {
  for (const char* const condition :
       {"total_ns >= 3000000", "total_ns>=3ms", "total_ns >= 3000 us", "total_ns >= 0.003s",
        "bytes > 2MiB", "bytes > 2048 KiB", "gpu_busy_percent > 50 %"}) {
    EXPECT_EQ(Left(condition), 2u) << condition;
  }
  EXPECT_THAT(Refusal("total_ns > 2MiB"), HasSubstr("write ns, or 1.5us, 10ms, 2s"));
  EXPECT_THAT(Refusal("bytes > big"), HasSubstr("write bytes, or 512KiB"));
}

TEST(TableFilter, ColumnsHaveTheNamesThatTextShowsToo) {
  EXPECT_EQ(Left("total > 2ms"), 2u);
  EXPECT_EQ(Left("gpu busy > 50"), 2u);
  EXPECT_THAT(Refusal("held > 2"), HasSubstr("'held' may be held_ns or held_bytes"));
  EXPECT_THAT(Refusal("totals > 2"), HasSubstr("it has name, total_ns, bytes"));
  Table table = Sample();
  ASSERT_TRUE(SortBy("total", &table).ok());
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), "row 4");
  ASSERT_TRUE(SortBy("compute %", &table).ok());  // beside a time its share has this heading
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), "row 1");
  ASSERT_TRUE(SortBy("compute", &table).ok());
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), "row 4");
}

TEST(RunFilter, StepsThatAreNotThereAreAnErrorThatNamesThoseThatAre) {
  SyntheticJob job({.steps = 10});
  const Result<std::vector<std::string>> none = KeepSteps(*ParseNumberSet("500-600"), &job.run());
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.message(), HasSubstr("none of these steps is in the run; it has "));
  EXPECT_GT(job.run().traces[0].kernels.size(), 0u);
}

TEST(RunFilter, TwoWindowsThatMeetHaveEachEventOnce) {
  SyntheticJob whole({.steps = 10});
  const Kernels& kernels = whole.run().traces[0].kernels;
  const int64_t middle = kernels.start[kernels.size() / 2];
  size_t parts = 0;
  for (const Interval& window : {Interval{INT64_MIN, middle}, Interval{middle, INT64_MAX}}) {
    SyntheticJob job({.steps = 10});
    ASSERT_TRUE(KeepWindows(std::vector(job.run().traces.size(), window), &job.run()));
    EXPECT_LT(job.run().traces[0].kernels.size(), kernels.size());
    parts += job.run().traces[0].kernels.size();
  }
  EXPECT_EQ(parts, kernels.size());
}

TEST(RunFilter, AWindowInWhichNothingBeganTakesNothing) {
  SyntheticJob job({.steps = 10});
  const size_t before = job.run().traces[0].kernels.size();
  const Interval window{INT64_MAX - 1, INT64_MAX};
  EXPECT_FALSE(KeepWindows(std::vector(job.run().traces.size(), window), &job.run()));
  EXPECT_EQ(job.run().traces[0].kernels.size(), before);
}

TEST(RunFilter, NumbersAreListedAsRanges) {
  EXPECT_EQ(ListOf({0, 2, 3, 4, 9}), "0,2-4,9");
  EXPECT_EQ(ListOf({}), "");
}

}  // namespace
}  // namespace ranktap::collector
