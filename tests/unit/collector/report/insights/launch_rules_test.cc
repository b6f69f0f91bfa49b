// Rules about how work is launched. Each pair of programs differs in one number.
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// 100 kernels a step, one launched each 20 us, which run for `kernel_ns` or until the next.
InsightProgram ALoopThatLaunches(int64_t kernel_ns, std::string_view api = "cudaLaunchKernel",
                                 uint32_t graph = 0) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 2 * kMs; at += 2 * kMs) {
    program->AddStep(at, at + 2 * kMs);
    for (int64_t i = 0; i < 100; ++i) {
      const int64_t launched = at + i * 20 * kUs;
      program->AddKernel(
          {.launched = launched, .start = launched, .end = launched + kernel_ns, .api = api});
      Kernels& kernels = program->trace().kernels;
      kernels.graph.PadTo(kernels.size());
      kernels.graph[kernels.size() - 1] = graph;
    }
  }
  return program;
}

TEST(LaunchBoundRule, FiresWhereTheDeviceWaitsForEachLaunch) {
  InsightProgram program = ALoopThatLaunches(8 * kUs);
  const Insight found = TheFinding(program.run(), "launch-bound");
  EXPECT_EQ(found.finding,
            "The device waits 1.199 ms of each 2.000 ms step (59.9 %) for the next launch: 100 "
            "times a step nothing is queued, 12.00 us each in the median.");
  EXPECT_EQ(found.lost_ns, 1'198'800);  // nothing ran before the first
  // A graph would leave 1 us of each gap.
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 1'100'000, 2'000);
}

TEST(LaunchBoundRule, IsSilentWhereKernelsLastUntilTheNextLaunch) {
  InsightProgram program = ALoopThatLaunches(19 * kUs);
  EXPECT_TRUE(IsSilent(program.run(), "launch-bound"));
}

TEST(LaunchBoundRule, IsSilentWhereTheLoopIsAGraphAlready) {
  InsightProgram program = ALoopThatLaunches(8 * kUs, "cudaGraphLaunch", 5);
  EXPECT_TRUE(IsSilent(program.run(), "launch-bound"));
}

TEST(LaunchBoundRule, SaysThatItCannotTellWithoutLaunches) {
  InsightProgram program = ALoopThatLaunches(8 * kUs);
  for (uint32_t& launch : program->trace().kernels.launch) launch = kNone;
  EXPECT_TRUE(IsUnchecked(program.run(), "launch-bound"));
}

TEST(TinyKernelsRule, FiresOnKernelsThatAreShorterThanTheirGaps) {
  InsightProgram program = ALoopThatLaunches(4 * kUs);
  const Insight found = TheFinding(program.run(), "tiny-kernels");
  EXPECT_EQ(found.finding,
            "1,000 of 1,000 kernels run for less than 5.000 us: they take 400.0 us of each 2.000 "
            "ms step, and 1.598 ms more pass between them.");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 1'600'000, 2'000);
}

TEST(TinyKernelsRule, IsSilentWhereKernelsAreLonger) {
  InsightProgram program = ALoopThatLaunches(6 * kUs);
  EXPECT_TRUE(IsSilent(program.run(), "tiny-kernels"));
}

}  // namespace
}  // namespace ranktap::collector
