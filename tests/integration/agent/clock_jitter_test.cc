// A device's clock that is off by some microseconds: kernels begin before their launch, and no
// table has a time below zero for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "collector/report/reports.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Table;

double NumberIn(const collector::Cell& cell) {
  return std::visit(
      [](const auto& value) -> double {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
          return static_cast<double>(value);
        } else {
          return 0;
        }
      },
      cell);
}

void ExpectSensible(const Table& table) {
  constexpr double kHourNs = 3.6e12;
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_GE(NumberIn(row[i]), 0) << table.title << ": " << table.columns[i].name;
      if (table.columns[i].unit != collector::Unit::kNs) continue;
      EXPECT_LT(NumberIn(row[i]), kHourNs) << table.title << ": " << table.columns[i].name;
    }
  }
}

TEST(ClockJitterTest, WorkThatBeginsBeforeItsLaunchIsJoinedAndNoTableGoesBelowZero) {
  TracedRun traced(
      {Host("train_cuda"), "--ranks", "1", "--steps", "20"},
      {{"RANKTAP_STANDIN_CLOCK_JITTER_NS", "30000"}, {"RANKTAP_STANDIN_LAUNCH_LATENCY_NS", "1000"}},
      {"--level", "full"});
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.Problems(), "");
  const collector::Run run = traced.TakeRun();
  const collector::Trace& trace = run.traces[0];
  size_t early = 0;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const uint32_t launch = trace.kernels.launch[i];
    ASSERT_NE(launch, collector::kNone);
    early += trace.kernels.start[i] < trace.api_calls.start[launch] ? 1 : 0;
  }
  EXPECT_GT(early, trace.kernels.size() / 10);
  for (const auto tabulate : {&collector::TabulateRanks,      &collector::TabulateVerdict,
                              &collector::TabulateWaterfall,  &collector::TabulateSteps,
                              &collector::TabulateStragglers, &collector::TabulateCriticalPath,
                              &collector::TabulateTemporal,   &collector::TabulateIdle,
                              &collector::TabulateOverlap,    &collector::TabulateKernels,
                              &collector::TabulateLaunches,   &collector::TabulateQueue,
                              &collector::TabulateBandwidth,  &collector::TabulateCopies,
                              &collector::TabulateSyncs,      &collector::TabulateUsage,
                              &collector::TabulateApis,       &collector::TabulateRanges,
                              &collector::TabulateCallSites,  &collector::TabulateGraphs}) {
    ExpectSensible(tabulate(run, {}));
  }
}

}  // namespace
}  // namespace ranktap::agent_test
