// NVML's readings on their way into the trace, with a libnvidia-ml of our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collector/report/claims/claim.h"
#include "collector/report/reports.h"
#include "tests/integration/control/live_run.h"

namespace ranktap::control_test {
namespace {

using agent_test::BuildPath;
using collector::Table;
using collector::Trace;
using ::testing::Contains;
using ::testing::HasSubstr;

Environment WithNvml(const std::string& mode = "") {
  return {{"LD_LIBRARY_PATH", BuildPath("fakes") + ":" + BuildPath("fakes/nvml")},
          {"RANKTAP_STANDIN_NVML", mode}};
}

// By the program's own clock: at 100 launches a second.
bool AwaitSeconds(const LiveRun& job, int seconds) {
  return WaitUntil([&] {
    const auto rows = job.Status();
    return rows.contains(0) && rows.at(0)["events"].get<int>() > seconds * 200;
  });
}

std::set<std::string> CounterNames(const Trace& trace) {
  std::set<std::string> names;
  for (const uint32_t name : trace.counters.name) {
    names.insert(std::string(trace.dictionary.String(name)));
  }
  return names;
}

TEST(DeviceSamplerTest, ClockPowerTemperatureMemoryAndThrottlingAreCountersOfTheTrace) {
  LiveRun job(1, 100, {}, WithNvml());
  ASSERT_TRUE(AwaitSeconds(job, 5));
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  // Another program has it 75 % of the time: our records do not tell how busy it is.
  EXPECT_THAT(collector::RulingOn(job.run(), collector::Claim::kBusy).why,
              HasSubstr("NVML saw device 0"));
  const Table table = collector::TabulateDevices(job.run());
  ASSERT_EQ(table.rows.size(), 1u) << "only the device that the rank works on";
  const auto cell = [&](const std::string& name) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].name == name) return table.rows[0][i];
    }
    return collector::Cell();
  };
  EXPECT_EQ(cell("device"), collector::Cell(int64_t{0}));
  EXPECT_GE(std::get<int64_t>(cell("samples")), 1);
  EXPECT_EQ(cell("sm_mhz_most"), collector::Cell(int64_t{1400}));
  EXPECT_EQ(cell("watts_mean"), collector::Cell(int64_t{250}));
  EXPECT_EQ(cell("celsius_most"), collector::Cell(int64_t{60}));
  EXPECT_EQ(cell("memory_most"), collector::Cell(int64_t{1} << 30));
  EXPECT_EQ(cell("throttled_percent"), collector::Cell(100.0));
  EXPECT_EQ(cell("throttled_by"), collector::Cell(std::string("power cap")));
  const auto exported = Ranktap({"export", job.path(), "-o", job.path() + ".json"});
  EXPECT_TRUE(exported->exited_with(0)) << exported->errors();
  const auto verified = Ranktap({"verify", job.path()});
  EXPECT_TRUE(verified->exited_with(0)) << verified->output();
}

TEST(DeviceSamplerTest, WhatNvmlDoesNotTellIsLeftOut) {
  LiveRun job(1, 100, {}, WithNvml("partial"));
  ASSERT_TRUE(AwaitSeconds(job, 3));
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  const auto names = CounterNames(job.run().traces[0]);
  EXPECT_TRUE(names.contains("SM clock (MHz)"));
  EXPECT_FALSE(names.contains("power (W)"));
}

// Its end is the program's, whose exit status `run` has: nothing waits for NVML.
TEST(DeviceSamplerTest, AnNvmlThatFailsOrHangsOrIsNotThereChangesNothingElse) {
  for (const char* mode : {"fail", "hang"}) {
    LiveRun job(1, 100, {}, WithNvml(mode));
    ASSERT_TRUE(AwaitSeconds(job, 3)) << mode;
    job.End();
    EXPECT_TRUE(job.process().exited_with(0)) << mode;
    ASSERT_EQ(job.run().traces.size(), 1u) << mode;
    EXPECT_GT(job.run().traces[0].kernels.size(), 0u) << mode;
  }
  LiveRun job(1, 100, {});
  ASSERT_TRUE(AwaitSeconds(job, 1));
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  EXPECT_EQ(job.run().traces[0].counters.size(), 0u);
  const Table table = collector::TabulateDevices(job.run());
  EXPECT_THAT(table.notes, Contains(HasSubstr("no libnvidia-ml.so.1")));
}

}  // namespace
}  // namespace ranktap::control_test
