// The order in which events and ranks came in changes no answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collector/report/report.h"
#include "collector/trace/launch_join.h"
#include "collector/trace/table_columns.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

JobShape Job() {
  return {.ranks = 4,
          .layers = 3,
          .steps = 6,
          .jitter_ns = 3'000,
          .late = {{.rank = 2, .cause = Cause::kCompute, .ns = 60'000},
                   {.rank = 1, .cause = Cause::kDataLoading, .ns = 90'000, .first_step = 4}},
          .clocks = {{}, {.offset_ns = 5'000, .drift_ppm = 3}, {.offset_ns = -70'000}, {}}};
}

// Deals the rows of every table and the ranks anew, then does what loading does.
void Shuffle(Run* run, uint32_t seed) {
  std::mt19937 random(seed);
  for (Trace& trace : run->traces) {
    ForEachTable(trace, [&random](auto& table) {
      std::vector<uint32_t> order(table.size());
      std::iota(order.begin(), order.end(), 0u);
      std::shuffle(order.begin(), order.end(), random);
      PermuteTable(table, order);
    });
    SortTables(&trace);
    SortNested(trace.ranges);
    JoinLaunches(&trace);
  }
  std::shuffle(run->traces.begin(), run->traces.end(), random);
  std::stable_sort(run->traces.begin(), run->traces.end(), [](const Trace& a, const Trace& b) {
    return a.info.rank < b.info.rank;  // as opening a run does
  });
}

std::string Print(const Table& table) {
  std::string text;
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) {
      if (const auto* const string = std::get_if<std::string>(&cell)) text += *string;
      if (const auto* const number = std::get_if<int64_t>(&cell)) text += std::to_string(*number);
      if (const auto* const real = std::get_if<double>(&cell)) text += std::to_string(*real);
      text += '\t';
    }
    text += '\n';
  }
  for (const std::string& note : table.notes) text += note + '\n';
  return text;
}

class ShuffleTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ShuffleTest, EveryAnalysisAnswersTheSame) {
  SyntheticJob original(Job()), shuffled(Job());
  Shuffle(&shuffled.run(), GetParam());
  for (const Report& report : AllReports()) {
    if (report.compare != nullptr) {
      const Table table = report(original.run(), shuffled.run());
      EXPECT_EQ(Print(table), Print(report(original.run(), original.run())));
      continue;
    }
    for (const bool hta : {false, true}) {
      const ReportOptions options = {.hta_compat = hta};
      const Table theirs = report(original.run(), options);
      EXPECT_EQ(Print(report(shuffled.run(), options)), Print(theirs))
          << report.name << (hta ? " --hta-compat" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShuffleTest, testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace ranktap::collector
