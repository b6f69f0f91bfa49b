// Times that are mapped many at once are those that ClockMap::Map gives one by one.
#include "collector/trace/load/map_spans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kSecondOfSpans = 1'000'000'000;

// Realtime of 2026 in nanoseconds, and a TSC of 3 GHz that drifts, three weeks after the boot.
constexpr uint64_t kRealtime = 1'790'000'000'000'000'000, kTicks = 5'443'200'000'000'000;

std::vector<std::pair<std::string, ClockMap>> ClocksToMap() {
  std::vector<ClockPair> ticks;
  for (uint64_t i = 0; i < 20; ++i) {
    ticks.push_back({kTicks + i * 2'994'000'000 + i * i * 100'000,
                     static_cast<int64_t>(i) * kSecondOfSpans + 12'345});
  }
  return {
      {"none", ClockMap()},
      {"one reading", ClockMap({{kRealtime, 5 * kSecondOfSpans}}, Steps::kPossible)},
      {"a step", ClockMap({{kRealtime, 0}, {kRealtime + 10 * kSecondOfSpans, 4 * kSecondOfSpans}},
                          Steps::kPossible)},
      {"ticks", ClockMap(std::move(ticks), Steps::kNever)},
      {"ticks of 4 ns",
       ClockMap({{kTicks, 0}, {kTicks + kSecondOfSpans / 4, kSecondOfSpans}}, Steps::kNever)}};
}

struct Spans {
  std::vector<int64_t> starts, ends;
};

// 4 s of them; among them times of 0, ends before the start and long pauses, each of which makes
// its block one that is mapped one by one.
Spans SpansFrom(uint64_t first, uint32_t strange_in, std::mt19937* random) {
  Spans spans;
  uint64_t now = first;
  for (int i = 0; i < 9'000; ++i) {
    now += (*random)() % 900'000;
    uint64_t end = now + (*random)() % 40'000;
    uint64_t start = now - (*random)() % 5'000;
    switch (strange_in == 0 ? 9 : (*random)() % strange_in) {
      case 0:
        start = 0;
        break;
      case 1:
        end = 0;
        break;
      case 2:
        end = start - 100;
        break;
      case 3:
        now += 7 * kSecondOfSpans;
        break;
      default:
        break;
    }
    spans.starts.push_back(static_cast<int64_t>(start));
    spans.ends.push_back(static_cast<int64_t>(end));
  }
  return spans;
}

void ExpectMappedOneByOne(const ClockMap& clock, Zero zero, const Spans& spans) {
  TimeColumn starts, ends;
  starts.Append(spans.starts), ends.Append(spans.ends);
  Bounds bounds, expected;
  MapSpans(clock, zero, &starts, &ends, &bounds);
  for (size_t i = 0; i < spans.starts.size(); ++i) {
    const auto start = static_cast<uint64_t>(spans.starts[i]);
    const auto end = static_cast<uint64_t>(spans.ends[i]);
    if (start == 0 && zero == Zero::kMeansUntimed) {
      ASSERT_EQ(starts[i], kUntimed) << i;
      ASSERT_EQ(ends[i], kUntimed) << i;
      continue;
    }
    ASSERT_EQ(starts[i], clock.Map(start)) << i;
    ASSERT_EQ(ends[i], end < start ? clock.Map(start) : clock.Map(end)) << i;
    expected.Cover(starts[i], ends[i]);
  }
  EXPECT_EQ(bounds.first, expected.first);
  EXPECT_EQ(bounds.last, expected.last);
}

// Seed 43.
TEST(MapSpans, GivesWhatTheClockGivesForEachTime) {
  std::mt19937 random(43);
  for (const auto& [name, clock] : ClocksToMap()) {
    for (const uint64_t first :
         {uint64_t{1'000'000}, kTicks, kRealtime, kRealtime + 8'000'000'000}) {
      for (const uint32_t strange_in : {0u, 40'000u, 4'000u, 50u}) {
        SCOPED_TRACE(name + " from " + std::to_string(first) + ", one of " +
                     std::to_string(strange_in) + " strange");
        const Spans spans = SpansFrom(first, strange_in, &random);
        ExpectMappedOneByOne(clock, Zero::kIsATime, spans);
        ExpectMappedOneByOne(clock, Zero::kMeansUntimed, spans);
      }
    }
  }
}

// A block whose times are kept by how much later than 0 they are.
TEST(MapSpans, AStartOf0AmongTimesNearItIsUntimed) {
  const Spans spans{{1 << 30, 0, 5, 1 << 30}, {1 << 30, 7, 9, 0}};
  ExpectMappedOneByOne(ClockMap({{1 << 30, 1'000}}, Steps::kPossible), Zero::kMeansUntimed, spans);
  ExpectMappedOneByOne(ClockMap({{1 << 30, 1'000}}, Steps::kPossible), Zero::kIsATime, spans);
}

// Half of a nanosecond goes away from 0, on both sides of a reading: 2 ticks are 1 ns.
TEST(MapSpans, RoundsAsTheClockDoes) {
  const ClockMap clock({{kTicks, 0}, {kTicks + 2 * kSecondOfSpans, kSecondOfSpans}}, Steps::kNever);
  Spans spans;
  for (int i = -3'000; i < 3'000; ++i) {
    spans.starts.push_back(static_cast<int64_t>(kTicks) + i);
    spans.ends.push_back(static_cast<int64_t>(kTicks) + i + 1);
  }
  ExpectMappedOneByOne(clock, Zero::kIsATime, spans);
  TimeColumn starts, ends;
  starts.Append(spans.starts), ends.Append(spans.ends);
  Bounds bounds;
  MapSpans(clock, Zero::kIsATime, &starts, &ends, &bounds);
  EXPECT_EQ(starts[3'001], 1) << "0.5 ns after the reading";
  EXPECT_EQ(starts[2'999], -1) << "0.5 ns before it";
}

TEST(MapSpans, NothingIsNoBounds) {
  TimeColumn starts, ends;
  Bounds bounds;
  MapSpans(ClockMap(), Zero::kIsATime, &starts, &ends, &bounds);
  EXPECT_GT(bounds.first, bounds.last);
}

}  // namespace
}  // namespace ranktap::collector
