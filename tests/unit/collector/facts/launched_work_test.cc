#include "collector/facts/launched_work.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace ranktap::collector {
namespace {

constexpr uint16_t kWriters = 4, kSilent = 3;  // one calls, and launches nothing

// Kernels take up to 50 times `unit`.
Trace TraceOfThreads(int64_t unit) {
  std::mt19937 random(3);
  Trace trace;
  trace.writers.resize(kWriters);
  for (uint32_t call = 0; call < 500; ++call) {
    const auto writer = static_cast<uint16_t>(random() % kWriters);
    trace.api_calls.start.push_back(100 + call / 2 * 10);  // two at once
    trace.api_calls.end.push_back(105 + call / 2 * 10);
    trace.api_calls.writer.push_back(writer);
    for (uint32_t kernels = writer == kSilent ? 0 : random() % 3; kernels > 0; --kernels) {
      trace.kernels.start.push_back(0);
      trace.kernels.end.push_back(unit * static_cast<int64_t>(1 + random() % 50));
      trace.kernels.launch.push_back(call);
    }
  }
  return trace;
}

int64_t Sum(const Trace& trace, uint16_t writer, int64_t start, int64_t end) {
  int64_t sum = 0;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const uint32_t launch = trace.kernels.launch[i];
    const int64_t called = trace.api_calls.start[launch];
    if (trace.api_calls.writer[launch] == writer && start <= called && called < end) {
      sum += trace.kernels.end[i];
    }
  }
  return sum;
}

// Of some seconds, what 64 calls launched does not fit into 4 bytes, or not what one did.
TEST(LaunchedWorkTest, WhatAThreadLaunchedBetweenTwoMomentsIsTheSumOfItsLaunches) {
  for (const int64_t unit : {1, 20'000'000, 1'000'000'000}) {
    SCOPED_TRACE(unit);
    const Trace trace = TraceOfThreads(unit);
    const LaunchedWork work(trace);
    std::mt19937 random(5);
    for (int i = 0; i < 1000; ++i) {
      const int64_t start = 80 + static_cast<int64_t>(random() % 2700);
      const int64_t end = start + static_cast<int64_t>(random() % (i % 2 == 0 ? 30 : 3000));
      const auto writer = static_cast<uint16_t>(random() % (kWriters + 1));
      EXPECT_EQ(work.Between(writer, start, end), Sum(trace, writer, start, end));
    }
  }
}

TEST(LaunchedWorkTest, WithoutCallsNothingWasLaunched) {
  Trace trace;
  trace.writers.resize(1);
  EXPECT_EQ(LaunchedWork(trace).Between(0, 10, 20), 0);
}

}  // namespace
}  // namespace ranktap::collector
