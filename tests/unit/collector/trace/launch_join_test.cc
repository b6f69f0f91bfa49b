#include "collector/trace/launch_join.h"
#include "tests/unit/collector/nanoseconds.h"

#include <gtest/gtest.h>

#include <random>

namespace ranktap::collector {
namespace {

void AddCall(Trace* trace, uint32_t correlation, int64_t start) {
  trace->api_calls.start.push_back(start);
  trace->api_calls.end.push_back(start + 1);
  trace->api_calls.correlation.push_back(correlation);
  trace->api_calls.api.push_back(1);
  trace->api_calls.writer.push_back(0);
}

void AddKernel(Trace* trace, uint32_t correlation, int64_t start) {
  trace->kernels.start.push_back(start);
  trace->kernels.end.push_back(start + 1);
  trace->kernels.correlation.push_back(correlation);
}

TEST(LaunchJoinTest, WorkFindsItsCallByCorrelation) {
  Trace trace;
  AddCall(&trace, 7, 10);
  AddCall(&trace, 9, 20);
  AddKernel(&trace, 9, 30);
  AddKernel(&trace, 7, 31);
  AddKernel(&trace, 8, 32);
  AddKernel(&trace, 0, 33);
  AddKernel(&trace, 4'000'000'000, 34);
  AddKernel(&trace, 9, 35);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 1u);
  EXPECT_EQ(trace.kernels.launch[1], 0u);
  EXPECT_EQ(trace.kernels.launch[2], kNone) << "no such call";
  EXPECT_EQ(trace.kernels.launch[3], kNone) << "0 is no correlation";
  EXPECT_EQ(trace.kernels.launch[4], kNone);
  EXPECT_EQ(trace.kernels.launch[5], 1u) << "a graph: one call, many kernels";
}

// Seed 42.
TEST(LaunchJoinTest, IdsThatCountUpAreFoundHoweverFarApartTheWorkIs) {
  Trace trace;
  for (uint32_t i = 0; i < 1000; ++i) AddCall(&trace, 5 + 3 * i, i);
  std::mt19937 random(42);
  for (uint32_t i = 0; i < 2000; ++i) AddKernel(&trace, 1 + random() % 3100, 2000 + i);
  JoinLaunches(&trace);
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const uint32_t id = trace.kernels.correlation[i];
    const bool exists = id >= 5 && id % 3 == 2 && id < 3005;
    ASSERT_EQ(trace.kernels.launch[i], exists ? (id - 5) / 3 : kNone) << id;
  }
}

// As two streams run them: those of the second were launched up to 5,000 calls earlier, and every
// eighth call was lost. Seed 44.
TEST(LaunchJoinTest, TheWorkOfTwoStreamsFindsItsCallsThoughSomeAreLost) {
  Trace trace;
  std::vector<uint32_t> row_of(20'001, kNone);
  for (uint32_t id = 1; id <= 20'000; ++id) {
    if (id % 8 == 0) continue;
    row_of[id] = static_cast<uint32_t>(trace.api_calls.size());
    AddCall(&trace, id, id);
  }
  std::mt19937 random(44);
  for (uint32_t id = 1; id <= 20'000; ++id) {
    AddKernel(&trace, id, 30'000 + id);
    const uint32_t earlier = 1 + random() % 5'000;
    if (random() % 10 == 0 && earlier < id) AddKernel(&trace, id - earlier, 30'000 + id);
  }
  JoinLaunches(&trace);
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    ASSERT_EQ(trace.kernels.launch[i], row_of[trace.kernels.correlation[i]]) << i;
  }
}

// Ids wrap after hours; a device's clock is off by microseconds.

TEST(LaunchJoinTest, AfterAWrapTheCallBeforeTheWorkIsTaken) {
  Trace trace;
  AddCall(&trace, 5, 10 * kMs);
  AddCall(&trace, 6, 20 * kMs);
  AddCall(&trace, 5, 1000 * kMs);
  AddKernel(&trace, 5, 15 * kMs);
  AddKernel(&trace, 5, 2000 * kMs);
  AddKernel(&trace, 5, 5 * kMs);
  AddKernel(&trace, 5, 1000 * kMs - 20 * kUs);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 0u);
  EXPECT_EQ(trace.kernels.launch[1], 2u);
  EXPECT_EQ(trace.kernels.launch[2], 0u) << "clock error: the first call is as good as it gets";
  EXPECT_EQ(trace.kernels.launch[3], 2u) << "a kernel that begins before its launch";
}

// As many calls as ids, on both sides of 2^32; CUPTI's 0 is no id.
TEST(LaunchJoinTest, IdsThatWrapInTheTraceFindTheirCallsOnBothSides) {
  constexpr int kCalls = 1000;
  Trace trace;
  std::vector<uint32_t> ids;
  for (uint32_t id = UINT32_MAX - kCalls / 2 + 1; ids.size() < kCalls; ++id) {
    if (id != 0) ids.push_back(id);
  }
  for (int i = 0; i < kCalls; ++i) AddCall(&trace, ids[static_cast<size_t>(i)], i * kUs);
  for (int i = 0; i < kCalls; ++i) {
    AddKernel(&trace, ids[static_cast<size_t>(i)], i * kUs + (i % 2 == 0 ? 3 : -3) * kUs);
  }
  JoinLaunches(&trace);
  for (uint32_t i = 0; i < kCalls; ++i) ASSERT_EQ(trace.kernels.launch[i], i) << ids[i];
}

class GraphIdsTest : public testing::TestWithParam<std::pair<const char*, bool>> {};

TEST_P(GraphIdsTest, AreNotBelievedAfterAGapWhereCuptiGetsThemWrong) {
  const auto [version, wrong] = GetParam();
  Trace trace;
  v1::Library* const library = trace.hello.add_libraries();
  library->set_name("cupti");
  library->set_version(version);
  AddCall(&trace, 7, 10);
  AddCall(&trace, 9, 200);
  for (const int64_t start : {30, 230}) {
    const uint32_t id = start < 100 ? 7 : 9;
    AddKernel(&trace, id, start);
    trace.kernels.graph.push_back(4);
    AddKernel(&trace, id, start);
    trace.kernels.graph.push_back(0);
    trace.graph_launches.start.push_back(start);
    trace.graph_launches.end.push_back(start + 1);
    trace.graph_launches.correlation.push_back(id);
  }
  JoinLaunches(&trace);
  EXPECT_EQ(trace.graph_launches.launch[1], 1u) << "there is no gap";
  Gap gap;
  gap.start = 50;
  gap.end = 100;
  gap.source = "cupti";
  trace.gaps.push_back(gap);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 0u);
  EXPECT_EQ(trace.graph_launches.launch[0], 0u);
  EXPECT_EQ(trace.kernels.launch[2], wrong ? kNone : 1u);
  EXPECT_EQ(trace.kernels.launch[3], 1u) << "not in a graph";
  EXPECT_EQ(trace.graph_launches.launch[1], wrong ? kNone : 1u);
}

INSTANTIATE_TEST_SUITE_P(Cupti, GraphIdsTest,
                         testing::Values(std::pair("130001", true), std::pair("130100", true),
                                         std::pair("130101", false), std::pair("28", false),
                                         std::pair("", false)),
                         [](const auto& info) { return "v" + std::string(info.param.first); });

TEST(LaunchJoinTest, SparseIdsAreJoinedLikeDenseOnes) {
  Trace trace;
  for (uint32_t i = 0; i < 100; ++i) AddCall(&trace, i * 40'000'000, i * kMs);
  AddCall(&trace, 40'000'000, 500 * kMs);
  AddKernel(&trace, 80'000'000, 1000 * kMs);
  AddKernel(&trace, 40'000'000, 400 * kMs);
  AddKernel(&trace, 40'000'000, 600 * kMs);
  AddKernel(&trace, 41, 1000 * kMs);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 2u);
  EXPECT_EQ(trace.kernels.launch[1], 1u);
  EXPECT_EQ(trace.kernels.launch[2], 100u);
  EXPECT_EQ(trace.kernels.launch[3], kNone);
}

}  // namespace
}  // namespace ranktap::collector
