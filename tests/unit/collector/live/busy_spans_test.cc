// How long anything was going on, of spans that come nearly in order.
#include "collector/live/busy_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace ranktap::collector {
namespace {

TEST(BusySpansTest, TimeThatSpansShareCountsOnce) {
  BusySpans spans;
  spans.Add(10, 20);
  spans.Add(15, 30);
  spans.Add(12, 18);
  EXPECT_EQ(spans.total(), 20);
  EXPECT_EQ(spans.end(), 30);
}

TEST(BusySpansTest, ALongSpanThatComesAfterShortOnesInsideOfItCountsWhatTheyLeftOpen) {
  BusySpans spans;
  spans.Add(10, 20);
  spans.Add(30, 40);
  spans.Add(50, 60);
  spans.Add(5, 55);
  EXPECT_EQ(spans.total(), 55);
  EXPECT_EQ(spans.end(), 60);
}

TEST(BusySpansTest, AnEmptyOrTurnedSpanIsNothing) {
  BusySpans spans;
  spans.Add(20, 20);
  spans.Add(30, 10);
  EXPECT_EQ(spans.total(), 0);
}

TEST(BusySpansTest, SpansThatComeUpToTwentyTooLateGiveTheUnion) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::pair<int64_t, int64_t>> all;
    int64_t at = 0;
    for (int i = 0; i < 1000; ++i) {
      at += static_cast<int64_t>(random() % 20);
      all.emplace_back(at, at + 1 + static_cast<int64_t>(random() % 30));
    }
    for (size_t i = 0; i + 20 < all.size(); i += 20) {
      std::shuffle(all.begin() + static_cast<ptrdiff_t>(i),
                   all.begin() + static_cast<ptrdiff_t>(i) + 20, random);
    }
    BusySpans spans;
    for (const auto& [begin, end] : all) spans.Add(begin, end);
    std::sort(all.begin(), all.end());
    int64_t covered = 0, until = INT64_MIN;
    for (const auto& [begin, end] : all) {
      covered += std::max<int64_t>(end - std::max(begin, until), 0);
      until = std::max(until, end);
    }
    ASSERT_EQ(spans.total(), covered) << "round " << round;
  }
}

TEST(BusySpansTest, WhatComesFarTooLateIsNotCountedTwice) {
  BusySpans spans;
  for (int64_t i = 0; i < 1000; ++i) spans.Add(10 * i, 10 * i + 5);
  EXPECT_EQ(spans.total(), 5000);
  spans.Add(0, 5);
  spans.Add(100, 105);
  EXPECT_EQ(spans.total(), 5000);
}

}  // namespace
}  // namespace ranktap::collector
