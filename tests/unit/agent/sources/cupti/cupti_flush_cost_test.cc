// When a flush has become dear.
#include "agent/sources/cupti/cupti_flush_cost.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// How many times it is said in a hundred flushes of `cost` that come after a hundred of a
// millisecond each with a thousand events.
int TimesSaid(uint64_t cost_ns, uint64_t events_each) {
  FlushCost flushes;
  uint64_t events = 0;
  int said = 0;
  for (int i = 0; i < 100; ++i) {
    said += flushes.HasTripled(1 * kMillisecond, events += 1000) ? 1 : 0;
  }
  EXPECT_EQ(said, 0);
  for (int i = 0; i < 100; ++i) said += flushes.HasTripled(cost_ns, events += events_each) ? 1 : 0;
  return said;
}

TEST(CuptiFlushCostTest, ThreeTimesTheCpuForAsManyEventsIsSaidOnce) {
  EXPECT_EQ(TimesSaid(3 * kMillisecond, 1000), 1);
  EXPECT_EQ(TimesSaid(2 * kMillisecond, 1000), 0);
}

TEST(CuptiFlushCostTest, MoreCpuForMoreEventsIsNoGrowth) {
  EXPECT_EQ(TimesSaid(9 * kMillisecond, 9000), 0);
}

TEST(CuptiFlushCostTest, FewerEventsForTheSameCpuAreNoGrowth) {
  EXPECT_EQ(TimesSaid(1 * kMillisecond, 10), 0);
}

TEST(CuptiFlushCostTest, WhatIsLessThanAMillisecondIsNobodysConcern) {
  FlushCost flushes;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(flushes.HasTripled(1000, 0));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(flushes.HasTripled(900'000, 0));
}

}  // namespace
}  // namespace ranktap::agent::cupti
