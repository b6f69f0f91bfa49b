#include "collector/facts/numbers/twice_told.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace ranktap::collector {
namespace {

void ExpectDescribed(const std::vector<int64_t>& numbers) {
  TwiceTold told(numbers.size());
  const std::span<const int64_t> all(numbers);
  const size_t some = numbers.size() / 3;
  told.Add(all.first(some)), told.Add(all.subspan(some));
  told.AddAgain(all.first(some)), told.AddAgain(all.subspan(some));
  const Description of = told.Take();
  const Description expected = Describe(std::vector<double>(numbers.begin(), numbers.end()));
  EXPECT_EQ(of.count, expected.count);
  EXPECT_EQ(of.mean, expected.mean);
  EXPECT_EQ(of.deviation, expected.deviation);
  EXPECT_EQ(of.min, expected.min);
  EXPECT_EQ(of.quarter, expected.quarter);
  EXPECT_EQ(of.median, expected.median);
  EXPECT_EQ(of.three_quarters, expected.three_quarters);
  EXPECT_EQ(of.max, expected.max);
}

std::vector<int64_t> Numbers(size_t count, const std::function<int64_t(uint64_t)>& of) {
  std::mt19937_64 random(11);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(of(random()));
  return numbers;
}

TEST(TwiceToldTest, NumbersToldTwiceAreDescribedAsTheirListIs) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}, size_t{100'001}}) {
    ExpectDescribed(Numbers(count, [](uint64_t random) { return int64_t{5} + random % 1000; }));
    ExpectDescribed(Numbers(count, [](uint64_t random) { return random % 2 == 0 ? 0 : 900'000; }));
    ExpectDescribed(Numbers(count, [](uint64_t random) {
      return static_cast<int64_t>(random >> (8 + random % 50)) - 3000;
    }));
    ExpectDescribed(Numbers(count, [](uint64_t) { return 12'345'678; }));
  }
}

}  // namespace
}  // namespace ranktap::collector
