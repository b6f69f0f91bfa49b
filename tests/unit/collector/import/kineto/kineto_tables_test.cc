// What tables say of files of torch.profiler whose truth a few lines hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(KinetoTables, WhatMtiaRanIsDeviceWork) {
  const collector::Run run =
      OpenText(File("", Span("mtia_runtime", "runFunction", 1, 2, "\"correlation\":5") + "," +
                            Work("mtia_ccp_events", "job_exe", 10, 4, 5)));
  const Table kernels = TabulateKernels(run, {});
  ASSERT_EQ(kernels.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(kernels, 0, "name"), "job_exe");
  EXPECT_EQ(CellAt<int64_t>(kernels, 0, "total_ns"), 4000);
  EXPECT_EQ(run.traces.at(0).kernels.launch[0], 0u);
}

TEST(KinetoTables, DeviceEventsOfACategoryThatIsNotReadAreCounted) {
  const collector::Run run =
      OpenText(File("", Work("npu_queue", "a", 1, 2, 1) + "," + Work("npu_queue", "b", 4, 2, 2) +
                            "," + Span("npu_host", "c", 4, 2)));
  EXPECT_THAT(run.traces.at(0).info.notes,
              Contains("this trace has 2 device events of category npu_queue that are not read"));
  EXPECT_THAT(run.traces[0].info.notes, Contains("events of category npu_host: 1 not read"));
}

}  // namespace
}  // namespace ranktap::collector
