#include "collector/report/device/patterns.h"
#include "collector/report/reports.h"

#include <gtest/gtest.h>

#include <random>

#include "collector/facts/sequences/repeated_sequences.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

using Text = std::vector<uint32_t>;

std::vector<RepeatedSequence> Find(const Text& text, const RepeatLimits& limits = {}) {
  return FindRepeatedSequences(text, std::vector<int64_t>(text.size(), 1), limits);
}

void Append(Text* text, const Text& part, size_t times = 1) {
  for (size_t i = 0; i < times; ++i) text->insert(text->end(), part.begin(), part.end());
}

TEST(RepeatedSequences, LayersAndStepsAreFoundAtBothLevelsWithExactCounts) {
  const Text layer = {1, 2, 3, 4};
  Text step;
  Append(&step, layer, 12);
  Append(&step, {5, 6});
  Text text = {9, 8, 7};  // a start that does not recur
  Append(&text, step, 20);
  const std::vector<RepeatedSequence> found = Find(text);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].symbols, step);
  EXPECT_EQ(found[0].places.size(), 20u);
  EXPECT_EQ(found[0].places[0], 3u);
  EXPECT_EQ(found[1].symbols, layer);
  EXPECT_EQ(found[1].places.size(), 240u);
}

TEST(RepeatedSequences, WhatIsPlantedInNoiseIsFoundAtItsPlaces) {
  std::mt19937 random(7);
  std::uniform_int_distribution<uint32_t> noise(0, 999);
  const Text planted = {1001, 1002, 1001, 1003, 1002, 1004, 1005};
  Text text;
  std::vector<size_t> places;
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 100; ++k) text.push_back(noise(random));
    places.push_back(text.size());
    Append(&text, planted);
  }
  const std::vector<RepeatedSequence> found = Find(text);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].symbols, planted);
  EXPECT_EQ(found[0].places, places);
}

TEST(RepeatedSequences, PlacesAreExactWhereSymbolsOfThePatternAreAlsoNoise) {
  std::mt19937 random(11);
  std::uniform_int_distribution<uint32_t> noise(0, 7);
  const Text planted = {0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 1, 3, 5, 7};
  Text text;
  for (int i = 0; i < 60; ++i) {
    for (int k = 0; k < 40; ++k) text.push_back(noise(random));
    Append(&text, planted);
  }
  const std::vector<RepeatedSequence> found = Find(text, {.shortest = 10});
  ASSERT_FALSE(found.empty());
  for (const RepeatedSequence& one : found) {
    EXPECT_EQ(one.places, FindPlaces(text, one.symbols));
  }
  EXPECT_GE(FindPlaces(found[0].symbols, {planted.begin() + 2, planted.end() - 2}).size(), 1u);
  EXPECT_GE(found[0].places.size(), 55u);
}

TEST(RepeatedSequences, NothingReachesOverASeparator) {
  Text text;
  for (int i = 0; i < 10; ++i) Append(&text, {1, 2, kSeparator});
  EXPECT_TRUE(Find(text).empty());
}

TEST(RepeatedSequences, OneSymbolRepeatedIsNoSequence) {
  EXPECT_TRUE(Find(Text(1000, 3)).empty());
  EXPECT_TRUE(Find({}).empty());
}

TEST(Patterns, TheStepsOfAJobAreARowWithItsLayersFolded) {
  SyntheticJob job({.ranks = 4, .layers = 3, .steps = 8});
  const Table table = TabulatePatterns(job.run(), {});
  // Stream 7 of each rank: a copy and three layers in each step.
  ASSERT_GE(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "stream");
  EXPECT_EQ(CellAt<std::string>(table, 0, "pattern"), "Memcpy HtoD | gemm x3");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "count"), 4 * 8);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "length"), 4);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "gpu_ns"), 4 * 8 * (20'000 + 3 * 200'000));
  EXPECT_EQ(CellAt<int64_t>(table, 0, "ranks"), 4);
}

// Operators "layer" of gemm, gemm, all-reduce, and one each step around them.
TEST(Patterns, OperatorsThatLaunchTheSameAreCountedTogether) {
  SyntheticJob job({.ranks = 1, .layers = 3, .steps = 5});
  Trace& trace = job.run().traces[0];
  const uint32_t layer = trace.dictionary.AppendString("Layer");
  const uint32_t step = trace.dictionary.AppendString("ProfilerStep#1");
  const uint32_t outer = trace.dictionary.AppendString("OuterLayer");
  const auto add = [&trace](uint32_t name, int64_t start, int64_t end) {
    trace.operators.name.push_back(name);
    trace.operators.start.push_back(start);
    trace.operators.end.push_back(end);
    trace.operators.writer.push_back(0);
    trace.operators.kind.push_back(0);
  };
  std::vector<int64_t> launches;  // a copy, then a gemm and an all-reduce a layer, then a sync
  for (const int64_t start : trace.api_calls.start) launches.push_back(start);
  const size_t a_step = 1 + 2 * 3 + 1;
  for (size_t s = 0; s < 5; ++s) {
    const int64_t* const at = &launches[s * a_step];
    add(step, at[0] - 3, at[6] + 3);
    add(outer, at[1] - 2, at[6] + 2);
    add(layer, at[1] - 1, at[6] + 1);
  }
  NestOperators(&trace);
  const Table all = TabulatePatterns(job.run(), {});
  const size_t row = RowWith<std::string>(all, "operator", "OuterLayer");
  EXPECT_EQ(CellAt<int64_t>(all, row, "count"), 5);
  EXPECT_EQ(CellAt<int64_t>(all, row, "length"), 6);
  EXPECT_EQ(CellAt<int64_t>(all, row, "gpu_ns"), 5 * 3 * (200'000 + 80'000));
  EXPECT_EQ(CellAt<int64_t>(all, RowWith<std::string>(all, "operator", "ProfilerStep*"), "count"),
            5);
  for (size_t i = 0; i < all.rows.size(); ++i) {
    EXPECT_NE(all.rows[i][1], Cell("Layer")) << "the outer one has the row";
  }
  const Table named = TabulatePatterns(job.run(), {.operator_name = "Layer"});
  ASSERT_EQ(named.rows.size(), 1u) << "only the shallowest";
  EXPECT_EQ(CellAt<std::string>(named, 0, "operator"), "OuterLayer");
}

}  // namespace
}  // namespace ranktap::collector
