#include "collector/trace/launch_join.h"

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

TEST(LaunchJoinTest, AfterAWrapTheCallBeforeTheWorkIsTaken) {
  Trace trace;
  AddCall(&trace, 5, 10);
  AddCall(&trace, 6, 20);
  AddCall(&trace, 5, 1000);
  AddKernel(&trace, 5, 15);
  AddKernel(&trace, 5, 2000);
  AddKernel(&trace, 5, 5);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 0u);
  EXPECT_EQ(trace.kernels.launch[1], 2u);
  EXPECT_EQ(trace.kernels.launch[2], 0u) << "clock error: the first call is as good as it gets";
}

TEST(LaunchJoinTest, SparseIdsAreJoinedLikeDenseOnes) {
  Trace trace;
  for (uint32_t i = 0; i < 100; ++i) AddCall(&trace, i * 40'000'000, i);
  AddCall(&trace, 40'000'000, 500);
  AddKernel(&trace, 80'000'000, 1000);
  AddKernel(&trace, 40'000'000, 400);
  AddKernel(&trace, 40'000'000, 600);
  AddKernel(&trace, 41, 1000);
  JoinLaunches(&trace);
  EXPECT_EQ(trace.kernels.launch[0], 2u);
  EXPECT_EQ(trace.kernels.launch[1], 1u);
  EXPECT_EQ(trace.kernels.launch[2], 100u);
  EXPECT_EQ(trace.kernels.launch[3], kNone);
}

}  // namespace
}  // namespace ranktap::collector
