#include "collector/trace/packed_column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace ranktap::collector {
namespace {

constexpr int64_t kUnknownTime = std::numeric_limits<int64_t>::min();
constexpr int64_t kSecondOfColumn = 1'000'000'000;
constexpr size_t kRowsOfBlock = TimeColumn::kBlock;

std::vector<int64_t> ColumnValues(const TimeColumn& column) {
  return {column.begin(), column.end()};
}
std::vector<uint32_t> ColumnValues(const IdColumn& column) {
  return {column.begin(), column.end()};
}

TimeColumn FilledTimes(const std::vector<int64_t>& times) {
  TimeColumn column;
  column.Append(times);
  return column;
}

// Mostly a microsecond later than the one before; some long before or after, or not known.
std::vector<int64_t> WanderingTimes(std::mt19937* random, size_t rows) {
  std::vector<int64_t> times;
  int64_t now = 1'000'000'000'000'000;
  for (size_t i = 0; i < rows; ++i) {
    now += 1'000 + static_cast<int64_t>((*random)() % 100);
    const uint32_t kind = (*random)() % 2000;
    if (kind == 0) now += 10 * kSecondOfColumn;
    times.push_back(kind == 1   ? kUnknownTime
                    : kind == 2 ? std::numeric_limits<int64_t>::max()
                    : kind == 3 ? now - 5 * kSecondOfColumn
                                : now - static_cast<int64_t>((*random)() % 5'000));
  }
  return times;
}

TEST(TimeColumnTest, GivesEveryTimeAsItWasWrittenHoweverFarFromTheOthers) {
  std::mt19937 random(40);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> times;
    TimeColumn column;
    for (int part = 0; part < 20; ++part) {
      const std::vector<int64_t> more = WanderingTimes(&random, random() % 1500);
      switch (random() % 5) {
        case 0:
          for (const int64_t time : more) column.push_back(time);
          times.insert(times.end(), more.begin(), more.end());
          break;
        case 1:
          column.Append(more);
          times.insert(times.end(), more.begin(), more.end());
          break;
        case 2: {
          const size_t first = times.empty() ? 0 : random() % times.size();
          const size_t count = std::min(more.size(), times.size() - first);
          column.Write(first, {more.data(), count});
          std::copy_n(more.begin(), count, times.begin() + static_cast<std::ptrdiff_t>(first));
          break;
        }
        case 3:
          times.resize(random() % 4 == 0 ? times.size() / 2 : times.size());
          column.Truncate(times.size());
          if (random() % 2 == 0) column.ShrinkToFit();
          break;
        case 4: {
          const size_t first = times.empty() ? 0 : random() % times.size();
          std::vector<uint32_t> order(std::min<size_t>(random() % 1500, times.size() - first));
          std::iota(order.begin(), order.end(), 0u);
          std::shuffle(order.begin(), order.end(), random);
          std::vector<int64_t> room(order.size());
          column.Permute(first, order, room.data());
          const std::vector<int64_t> before = times;
          for (size_t i = 0; i < order.size(); ++i) times[first + i] = before[first + order[i]];
          break;
        }
      }
      ASSERT_EQ(ColumnValues(column), times);
      uint64_t sum = 0;
      for (const int64_t time : times) sum += static_cast<uint64_t>(time);
      ASSERT_EQ(column.Sum(), sum);
    }
    std::vector<int64_t> read(times.size());
    column.Read(0, read);
    ASSERT_EQ(read, times);
    const TimeColumn::View view = column.view();
    const TimeColumn moved = std::move(column);
    for (size_t i = 0; i < times.size(); i += 97) ASSERT_EQ(view[i], times[i]);
  }
}

TEST(TimeColumnTest, TakesFourBytesOfATimeThoughAnotherIsFarAway) {
  constexpr size_t kRows = 100 * kRowsOfBlock;
  std::vector<int64_t> times(kRows);
  for (size_t i = 0; i < kRows; ++i) times[i] = static_cast<int64_t>(i) * 1'000;
  for (size_t i = kRows / 2; i < kRows; ++i) times[i] += 3600 * kSecondOfColumn;
  times[kRows / 2 + 10] = kUnknownTime;
  TimeColumn column = FilledTimes(times);
  column.ShrinkToFit();
  EXPECT_EQ(ColumnValues(column), times);
  EXPECT_LE(column.bytes(), kRows * sizeof(uint32_t) * 105 / 100);
}

TEST(TimeColumnTest, ABlockThatFitsAgainGivesItsCopyBack) {
  TimeColumn column = FilledTimes(std::vector<int64_t>(kRowsOfBlock, 5));
  column.Set(7, kUnknownTime);
  column.ShrinkToFit();
  const size_t whole = column.bytes();
  column.Set(7, 6);
  column.ShrinkToFit();
  EXPECT_EQ(column[7], 6);
  EXPECT_EQ(column.bytes() + kRowsOfBlock * sizeof(int64_t), whole);
}

// A malformed file can have any number of frames that are taken back.
TEST(TimeColumnTest, WhatIsTakenBackTakesNoMemoryTheNextTime) {
  TimeColumn column = FilledTimes(std::vector<int64_t>(kRowsOfBlock, 5));
  const std::vector<int64_t> apart = {0, kUnknownTime};
  column.Append(apart);
  column.Truncate(kRowsOfBlock);
  const size_t bytes = column.bytes();
  for (int i = 0; i < 1000; ++i) {
    column.Append(apart);
    column.Truncate(kRowsOfBlock);
  }
  EXPECT_EQ(column.bytes(), bytes);
}

TEST(TimeColumnTest, TellsOfARunWhetherItsTimesEverGoBack) {
  std::vector<int64_t> times(4 * TimeColumn::kRun + 5);
  for (size_t i = 0; i < times.size(); ++i) times[i] = static_cast<int64_t>(i / 2);
  times[TimeColumn::kRun + 7] = 0;      // in the second
  times[3 * TimeColumn::kRun - 1] = 0;  // the last of the third
  times[3 * TimeColumn::kRun] = -1;     // before the last of the third, which is not asked
  const TimeColumn column = FilledTimes(times);
  EXPECT_TRUE(column.RunCountsUp(0));
  EXPECT_FALSE(column.RunCountsUp(TimeColumn::kRun));
  EXPECT_FALSE(column.RunCountsUp(2 * TimeColumn::kRun));
  EXPECT_TRUE(column.RunCountsUp(3 * TimeColumn::kRun));
  EXPECT_FALSE(column.RunCountsUp(1)) << "no run begins there";
  EXPECT_FALSE(column.RunCountsUp(4 * TimeColumn::kRun)) << "five rows are no run";
}

TEST(TimeColumnTest, IsSearchedLikeAnArray) {
  const TimeColumn column = FilledTimes({kUnknownTime, 3, 5, 5, 9 * kSecondOfColumn});
  const auto first = std::lower_bound(column.begin(), column.end(), 5);
  EXPECT_EQ(first - column.begin(), 2);
  EXPECT_EQ(std::upper_bound(first, column.end(), 5) - column.begin(), 4);
  EXPECT_TRUE(std::ranges::is_sorted(column));
  EXPECT_EQ(column.back(), 9 * kSecondOfColumn);
}

TEST(IdColumnTest, GivesEveryNumberAsItWasWrittenAndTakesTwoBytesUntilOneDoesNotFit) {
  std::vector<uint32_t> ids(5000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i * 13 % 65'536);
  IdColumn column;
  column.Append(ids);
  column.push_back(65'535);
  ids.push_back(65'535);
  column.ShrinkToFit();
  EXPECT_EQ(ColumnValues(column), ids);
  EXPECT_EQ(column.bytes(), ids.size() * sizeof(uint16_t));
  column.push_back(std::numeric_limits<uint32_t>::max());
  ids.push_back(std::numeric_limits<uint32_t>::max());
  column.Append(std::vector<uint32_t>{1, 2});
  ids.insert(ids.end(), {1, 2});
  EXPECT_EQ(ColumnValues(column), ids);
  column.Set(3, 7);
  column.Write(4, std::vector<uint32_t>{70'000, 8});
  ids[3] = 7, ids[4] = 70'000, ids[5] = 8;
  EXPECT_EQ(ColumnValues(column), ids);
  column.Truncate(4);
  column.PadTo(6);
  ids.resize(4), ids.resize(6);
  EXPECT_EQ(ColumnValues(column), ids);
}

TEST(IdColumnTest, IsPutIntoAnotherOrderWhetherItsNumbersFitOrNot) {
  for (const uint32_t most : {9u, 70'000u}) {
    IdColumn column;
    column.Append(std::vector<uint32_t>{1, 2, 3, most});
    uint64_t room[3];
    column.Permute(1, std::vector<uint32_t>{2, 0, 1}, room);
    EXPECT_EQ(ColumnValues(column), (std::vector<uint32_t>{1, most, 2, 3}));
  }
}

TEST(IdColumnTest, OneThatDoesNotFitMayBeSetLater) {
  IdColumn column;
  column.Append(std::vector<uint32_t>{1, 2, 3});
  column.Set(1, 65'536);
  EXPECT_EQ(ColumnValues(column), (std::vector<uint32_t>{1, 65'536, 3}));
}

}  // namespace
}  // namespace ranktap::collector
