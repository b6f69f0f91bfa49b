#include "collector/trace/table_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace ranktap::collector {
namespace {

// A few sorted rows woven together, as a trace's are; `jitter` is how far a row may lie behind.
Syncs Woven(std::mt19937* random, size_t rows, int64_t jitter) {
  Syncs table;
  int64_t time = -1000;
  for (size_t i = 0; i < rows; ++i) {
    time += static_cast<int64_t>((*random)() % 3);
    const int64_t behind = jitter == 0 ? 0 : static_cast<int64_t>((*random)()) % jitter;
    table.start.push_back(i % 7 == 0 ? time - behind : time);
    table.end.push_back(static_cast<int64_t>(i));
    table.correlation.push_back(static_cast<uint32_t>(i));
    for (auto* const column : {&table.context, &table.stream, &table.cuda_event}) {
      column->push_back(static_cast<uint32_t>(3 * i));
    }
    table.type.push_back(static_cast<uint8_t>(i));
    // As long as its last value that is not 0.
    if (i == rows / 2) {
      table.record_correlation.PadTo(i);
      table.record_correlation.push_back(77);
    }
  }
  return table;
}

// Seed 41: against a stable sort of all rows, every column.
TEST(TableColumnsTest, RowsAreSortedByStartAndThoseOfOneStartKeepTheirOrder) {
  std::mt19937 random(41);
  for (int round = 0; round < 200; ++round) {
    const size_t rows = random() % 200;
    Trace trace;
    Syncs& table = trace.syncs;
    table = Woven(&random, rows, std::vector<int64_t>{0, 2, 20, 1000}[round % 4]);
    std::vector<uint32_t> order(rows);
    std::iota(order.begin(), order.end(), 0u);
    const std::vector<int64_t> starts(table.start.begin(), table.start.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return starts[a] < starts[b]; });
    SortTables(&trace);
    ASSERT_EQ(table.size(), rows);
    for (size_t i = 0; i < rows; ++i) {
      const uint32_t was = order[i];
      ASSERT_EQ(table.start[i], starts[was]) << "round " << round << " row " << i;
      ASSERT_EQ(table.correlation[i], was);
      ASSERT_EQ(table.end[i], int64_t{was});
      ASSERT_EQ(table.stream[i], 3 * was);
      ASSERT_EQ(table.type[i], static_cast<uint8_t>(was));
      ASSERT_EQ(table.record_correlation.At(i), was == rows / 2 ? 77u : 0u);
    }
  }
}

TEST(TableColumnsTest, WhatIsSortedIsNotTouchedAndOneLateRowMovesOnlyWhatItPasses) {
  TimeColumn starts;
  starts.Append(std::vector<int64_t>{1, 2, 5, 7, 6, 8, 9});
  const std::vector<UnsortedRows> unsorted = FindUnsorted(starts);
  ASSERT_EQ(unsorted.size(), 1u);
  EXPECT_EQ(unsorted[0].begin, 3u);
  EXPECT_EQ(unsorted[0].end, 5u);
}

TEST(TableColumnsTest, AKeptRowBehindTheEndOfAnOptionalColumnReadsAsZero) {
  std::mt19937 random(42);
  Syncs table = Woven(&random, 100, 0);  // record_correlation ends at row 50
  PermuteTable(table, {90, 50, 99});
  EXPECT_EQ(table.correlation[0], 90u);
  EXPECT_EQ(table.record_correlation.At(0), 0u);
  EXPECT_EQ(table.record_correlation.At(1), 77u);
  EXPECT_EQ(table.record_correlation.At(2), 0u);
}

}  // namespace
}  // namespace ranktap::collector
