// Against numpy: percentile(method='linear'), std(ddof=1).
#include "collector/facts/numbers/duration_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace ranktap::collector {
namespace {

TEST(DurationDistributionTest, QuantilesLieBetweenNeighboursAndTheDeviationIsOfASample) {
  DurationDistribution first, second;
  for (const int64_t ns : {10, 20, 40}) first.Add(ns);
  for (const int64_t ns : {80, 160, 1000}) second.Add(ns);
  first.Add(second);
  EXPECT_EQ(first.count, 6);
  EXPECT_EQ(first.median_ns(), 60);
  EXPECT_EQ(first.p95_ns(), 790);
  EXPECT_EQ(first.stddev_ns(), 387);  // 386.8
  EXPECT_EQ(first.QuantileNs(0), 10);
  EXPECT_EQ(first.QuantileNs(1), 1000);
}

TEST(DurationDistributionTest, OfNoneAndOfOneThereIsNoDeviation) {
  DurationDistribution times;
  EXPECT_EQ(times.median_ns(), 0);
  EXPECT_EQ(times.stddev_ns(), 0);
  times.Add(7);
  EXPECT_EQ(times.p95_ns(), 7);
  EXPECT_EQ(times.stddev_ns(), 0);
}

// Some alike, some longer than 4 s, and one below 0.
std::vector<int64_t> ManyDurations() {
  std::mt19937_64 random(7);
  std::vector<int64_t> durations;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t ns = static_cast<int64_t>(random() % 10) * 1000;
    durations.push_back(i % 3 == 0 ? ns : static_cast<int64_t>(random() >> (20 + random() % 40)));
  }
  durations[77] = -5;
  return durations;
}

TEST(DurationDistributionTest, OfManyTheQuantilesAreThoseOfTheSortedList) {
  std::vector<int64_t> durations = ManyDurations();
  DurationDistribution times, short_times;
  std::vector<int64_t> short_durations;
  for (const int64_t ns : durations) {
    times.Add(ns);
    if (ns < 0 || ns > UINT32_MAX) continue;
    short_times.Add(ns);
    short_durations.push_back(ns);
  }
  const auto expect = [](const DurationDistribution& distribution, std::vector<int64_t> sorted) {
    std::ranges::sort(sorted);
    for (const double q : {0.0, 0.3, 0.5, 0.95, 0.99, 1.0}) {
      const double place = q * static_cast<double>(sorted.size() - 1);
      const auto below = static_cast<size_t>(place);
      const size_t above = std::min(below + 1, sorted.size() - 1);
      const double between =
          (place - std::floor(place)) * static_cast<double>(sorted[above] - sorted[below]);
      EXPECT_EQ(distribution.QuantileNs(q), static_cast<double>(sorted[below]) + between);
    }
  };
  expect(times, durations);
  expect(short_times, short_durations);
  short_times.Add(times);
  short_durations.insert(short_durations.end(), durations.begin(), durations.end());
  expect(short_times, short_durations);
}

void ExpectDescribed(const std::vector<int64_t>& durations) {
  DurationDistribution at_once, in_parts, merged;
  at_once.Add(std::span(durations));
  for (size_t i = 0; i < durations.size(); ++i) {
    (i % 3 == 0 ? merged : in_parts).Add(durations[i]);
  }
  merged.Add(in_parts);
  const Description expected = Describe(std::vector<double>(durations.begin(), durations.end()));
  for (const DurationDistribution* const times : {&at_once, &merged}) {
    const Description of = times->Described();
    EXPECT_EQ(of.count, expected.count);
    EXPECT_EQ(of.mean, expected.mean);
    // The sum's order is another.
    EXPECT_NEAR(of.deviation, expected.deviation, 1e-9 * expected.deviation);
    EXPECT_EQ(of.min, expected.min);
    EXPECT_EQ(of.quarter, expected.quarter);
    EXPECT_EQ(of.median, expected.median);
    EXPECT_EQ(of.three_quarters, expected.three_quarters);
    EXPECT_EQ(of.max, expected.max);
  }
}

std::vector<int64_t> Durations(size_t count, const std::function<int64_t(uint64_t)>& of) {
  std::mt19937_64 random(11);
  std::vector<int64_t> durations;
  for (size_t i = 0; i < count; ++i) durations.push_back(of(random()));
  return durations;
}

TEST(DurationDistributionTest, CountedOrListedTheyAreDescribedAsTheirListIs) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}, size_t{100'001}}) {
    ExpectDescribed(Durations(count, [](uint64_t random) { return int64_t{5} + random % 1000; }));
    ExpectDescribed(
        Durations(count, [](uint64_t random) { return random % 2 == 0 ? 0 : 900'000; }));
    ExpectDescribed(Durations(
        count, [](uint64_t random) { return static_cast<int64_t>(random >> (30 + random % 34)); }));
    ExpectDescribed(Durations(count, [](uint64_t random) {
      return static_cast<int64_t>(random >> (30 + random % 34)) - 3000;
    }));
    ExpectDescribed(Durations(count, [](uint64_t) { return 12'345'678; }));
  }
}

}  // namespace
}  // namespace ranktap::collector
