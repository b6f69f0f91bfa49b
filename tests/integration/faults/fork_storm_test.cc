// A thousand children of each kind beside 32 threads that are being traced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/fault_seed.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::faults_test {
namespace {

using agent_test::Host;
using agent_test::SumWriters;
using agent_test::TracedRun;

class ForkStormTest : public testing::TestWithParam<const char*> {};

TEST_P(ForkStormTest, NobodyHangsAndNoEventIsAChilds) {
  const int count = FaultCount(1000);
  const TracedRun traced({Host("forks"), GetParam(), std::to_string(count), "32", "touch"});
  ASSERT_TRUE(traced.process().exited_with(0))
      << traced.process().output() << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.run().traces.size(), 1u);
  const collector::Trace& trace = traced.run().traces[0];
  const auto sums = SumWriters(trace);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    ASSERT_NE(trace.dictionary.String(trace.ranges.name[i]), "in the child");
  }
  std::printf("%d children by %s beside 32 threads: %lu events stored, %lu declared lost\n", count,
              GetParam(), sums.stored, sums.lost);
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkStormTest, testing::Values("fork", "raw", "vfork", "spawn"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ranktap::faults_test
