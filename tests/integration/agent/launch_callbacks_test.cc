// The two ways of hearing of a launch: from the runtime with the driver's call inside it, and from
// the driver alone (RANKTAP_DRIVER_LAUNCHES). The trace has the same launches and kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;

struct Seen {
  std::multiset<uint32_t> launches;            // correlation ids of the calls
  std::multiset<uint32_t> kernels;             // of kernels and whole graphs
  std::set<std::string> functions;             // that launched
  size_t without_launch = 0, other_calls = 0;  // kernels; calls that launch nothing
};

Seen Look(const Trace& trace) {
  Seen seen;
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    const std::string name(trace.dictionary.Api(trace.api_calls.api[i]).name);
    if (name.find("Launch") == std::string::npos) {
      ++seen.other_calls;
      continue;
    }
    seen.launches.insert(trace.api_calls.correlation[i]);
    seen.functions.insert(name);
  }
  const auto add = [&seen](const collector::DeviceWork& work, size_t rows) {
    for (size_t i = 0; i < rows; ++i) {
      seen.kernels.insert(work.correlation[i]);
      seen.without_launch += work.launch[i] == collector::kNone ? 1 : 0;
    }
  };
  add(trace.kernels, trace.kernels.size());
  add(trace.graph_launches, trace.graph_launches.size());
  return seen;
}

Seen TrainWith(const char* driver_launches) {
  const TracedRun traced({Host("train_cuda"), "--ranks", "1", "--steps", "3"},
                         {{"RANKTAP_DRIVER_LAUNCHES", driver_launches}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  EXPECT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  return traced.run().traces.empty() ? Seen{} : Look(traced.run().traces[0]);
}

TEST(LaunchCallbacksTest, TheDriversAloneBringTheSameLaunchesAndKernelsAsBoth) {
  const Seen both = TrainWith("0"), driver = TrainWith("1");
  EXPECT_THAT(both.functions, testing::Each(testing::HasSubstr("cuda")));
  EXPECT_THAT(driver.functions, testing::Each(testing::Not(testing::HasSubstr("cuda"))));
  EXPECT_GE(both.launches.size(), 20u);
  EXPECT_EQ(driver.launches, both.launches);
  EXPECT_EQ(driver.kernels, both.kernels);
  EXPECT_EQ(driver.other_calls, both.other_calls);
  EXPECT_EQ(driver.without_launch, 0u);
  EXPECT_EQ(both.without_launch, 0u);
}

TEST(NoCudaTest, RangesAreThereAndNothingOfCuda) {
  const TracedRun traced({Host("train_cuda"), "--ranks", "1", "--steps", "3"}, {},
                         {"--no-cuda", "--metadata", "learning_rate=0.1"});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_GT(trace.ranges.size(), 0u);
  EXPECT_EQ(trace.api_calls.size() + trace.kernels.size() + trace.copies.size(), 0u);
  EXPECT_EQ(traced.run().info.metadata.at("learning_rate"), "0.1");
}

}  // namespace
}  // namespace ranktap::agent_test
