#include "collector/facts/samples/host_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collector/facts/samples/sampled_trace.h"

namespace ranktap::collector {
namespace {

TEST(HostSamplesTest, ALineIsTheInnermostOfTheProgramWithTheCallOfAPackageBelowIt) {
  SampledTrace sampled;
  const HostSamples samples(sampled.trace());
  EXPECT_EQ(samples.LineOf(3), (ProgramLine{.line = 1, .below = 2}));
  EXPECT_EQ(samples.Describe(samples.LineOf(3)),
            "train.py:97 (main), in torch/nn/linear.py (forward)");
  EXPECT_EQ(samples.Describe(samples.LineOf(4)), "train.py:98 (main)");
  // Our own hook is not what the program called.
  EXPECT_EQ(samples.LineOf(7), (ProgramLine{.line = 4, .below = 7}));
  EXPECT_EQ(samples.LineOf(6), (ProgramLine{.line = 4, .below = 0}));
  EXPECT_EQ(samples.Describe(samples.LineOf(0)), "");
  EXPECT_EQ(samples.Describe(samples.LineOf(77)), "");
  // A frame that names itself as its caller ends the stack.
  EXPECT_EQ(samples.LineOf(5), (ProgramLine{.line = 5, .below = 0}));
}

TEST(HostSamplesTest, OnlyTheMainThreadsTimeCountsAndOnlyInTheIntervalAsked) {
  SampledTrace sampled;
  sampled.AddSamples("[40,3,2,10,100,300,5]\n[41,4,1,10,100,900,5]\n[40,4,1,5,300,400,90]\n");
  const HostSamples samples(sampled.trace());
  ASSERT_EQ(samples.all().size(), 3u);
  std::vector<std::pair<uint32_t, int64_t>> seen;
  samples.ForEachOfMain(250, 350, [&seen](const HostSample& sample, int64_t ns) {
    seen.emplace_back(sample.frame, ns);
  });
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(3u, 50), std::pair(4u, 50)));
}

TEST(HostSamplesTest, ALineIsNamedOnlyWhereItHasMoreThanHalfOfAllTheTime) {
  SampledTrace sampled;
  sampled.AddSamples("[40,3,2,10,0,60,5]\n[40,4,1,5,60,100,9]\n");
  const HostSamples samples(sampled.trace());
  LineTally whole, unseen, even;
  whole.Add(samples, 0, 100);
  EXPECT_EQ(whole.Most(), "train.py:97 (main), in torch/nn/linear.py (forward)");
  unseen.Add(samples, 0, 200);  // nobody looked after 100
  EXPECT_EQ(unseen.Most(), "");
  even.Add(samples, 24, 104);
  EXPECT_EQ(even.Most(), "");
}

// Looks at 10, 20 ... 100 all met line 98; a pass of 2 lies between two of them, eight times.
TEST(HostSamplesTest, WhatIsShorterThanTheTimeBetweenTwoLooksGetsNoLineOfItsNeighbours) {
  SampledTrace sampled;
  sampled.AddSamples("[40,4,1,10,0,100,95]\n");
  const HostSamples samples(sampled.trace());
  LineTally pass, rest;
  for (int64_t at = 14; at < 94; at += 10) {
    pass.Add(samples, at, at + 2);
    rest.Add(samples, at + 2, at + 10);
  }
  EXPECT_EQ(pass.Most(), "");
  EXPECT_EQ(rest.Most(), "train.py:98 (main)");
}

TEST(HostSamplesTest, TwoLooksNameNoLine) {
  SampledTrace sampled;
  sampled.AddSamples("[40,4,1,3,0,30,25]\n");
  const HostSamples samples(sampled.trace());
  LineTally two, three;
  two.Add(samples, 0, 20);
  three.Add(samples, 0, 30);
  EXPECT_EQ(two.Most(), "");
  EXPECT_EQ(three.Most(), "train.py:98 (main)");
}

}  // namespace
}  // namespace ranktap::collector
