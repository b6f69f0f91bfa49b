// Counter tracks of events whose curves are known.
#include <gtest/gtest.h>

#include "collector/facts/activity_counters.h"

namespace ranktap::collector {
namespace {

using Points = std::vector<std::pair<int64_t, double>>;

Points PointsOf(const Trace& trace, std::string_view name) {
  Points points;
  for (const ActivityCounter& counter : ActivityCounters(trace)) {
    if (counter.name != name) continue;
    for (const auto& [time, value] : counter.points) points.emplace_back(time, value);
  }
  return points;
}

// Launched at `launched`, on the device from `start` to `end`.
void AddKernel(int64_t launched, int64_t start, int64_t end, Trace* trace) {
  const auto call = static_cast<uint32_t>(trace->api_calls.size());
  trace->api_calls.start.push_back(launched);
  trace->api_calls.end.push_back(launched + 1);
  trace->api_calls.correlation.push_back(call);
  trace->api_calls.api.push_back(1);
  trace->api_calls.writer.push_back(0);
  trace->kernels.start.push_back(start);
  trace->kernels.end.push_back(end);
  trace->kernels.name.push_back(1);
  trace->kernels.lane.push_back(0);
  trace->kernels.correlation.push_back(call);
  trace->kernels.launch.push_back(call);
}

Trace OneDevice() {
  Trace trace;
  trace.dictionary.AppendString("gemm");
  trace.dictionary.AppendApi({.domain = proto::ApiDomain::kRuntime, .cbid = 1, .name = "launch"});
  trace.writers.emplace_back().thread = 1;
  trace.lanes = {{0, 1, 7}};
  return trace;
}

TEST(ActivityCounters, PendingWorkRisesWithEachLaunchAndFallsAsWorkBegins) {
  Trace trace = OneDevice();
  AddKernel(100, 400, 500, &trace);
  AddKernel(200, 500, 700, &trace);
  AddKernel(600, 900, 1000, &trace);
  EXPECT_EQ(PointsOf(trace, "pending work"),
            (Points{{100, 1}, {200, 2}, {400, 1}, {500, 0}, {600, 1}, {900, 0}}));
}

TEST(ActivityCounters, PendingWorkMayBeginInAnotherOrderThanItWasLaunched) {
  Trace trace = OneDevice();
  AddKernel(100, 300, 400, &trace);
  AddKernel(200, 900, 1000, &trace);
  std::swap(trace.kernels.launch[0], trace.kernels.launch[1]);
  EXPECT_EQ(PointsOf(trace, "pending work"), (Points{{100, 1}, {200, 2}, {300, 1}, {900, 0}}));
}

TEST(ActivityCounters, EachDeviceHasItsOwnWork) {
  Trace trace = OneDevice();
  trace.lanes.push_back({3, 1, 7});
  trace.lanes.push_back({5, 1, 7});  // does nothing
  AddKernel(100, 400, 500, &trace);
  AddKernel(200, 600, 700, &trace);
  AddKernel(300, 800, 900, &trace);
  trace.kernels.lane.Set(1, 1);
  std::vector<std::pair<std::string, uint32_t>> names;
  for (const ActivityCounter& counter : ActivityCounters(trace)) {
    names.emplace_back(counter.name, counter.device);
  }
  EXPECT_EQ(names, (std::vector<std::pair<std::string, uint32_t>>{{"gpu_usage_ratio", 0},
                                                                  {"pending work", 0},
                                                                  {"gpu_usage_ratio", 3},
                                                                  {"pending work", 3}}));
  EXPECT_EQ(PointsOf(trace, "pending work"),
            (Points{{100, 1}, {300, 2}, {400, 1}, {800, 0}, {200, 1}, {600, 0}}));
}

TEST(ActivityCounters, WorkWithoutALaunchIsBusyAndNeverPending) {
  Trace trace = OneDevice();
  AddKernel(100, 400, 500, &trace);
  trace.kernels.launch[0] = kNone;
  EXPECT_EQ(PointsOf(trace, "pending work"), Points{});
  EXPECT_EQ(PointsOf(trace, "gpu_usage_ratio").size(), 101u);
}

TEST(ActivityCounters, ALongCurveOfDamagedTimesKeepsEachPoint) {
  constexpr int64_t kLaunches = 5000;
  Trace damaged = OneDevice(), whole = OneDevice();
  for (int64_t i = 0; i < kLaunches; ++i) {
    AddKernel(INT64_MIN + i, 2 * i, 2 * i + 1, &damaged);
    AddKernel(i - kLaunches, 2 * i, 2 * i + 1, &whole);
  }
  const Points points = PointsOf(damaged, "pending work");
  EXPECT_EQ(points.size(), 2u * kLaunches);
  EXPECT_EQ(points.front(), std::pair(INT64_MIN, 1.0));
  EXPECT_EQ(points.back(), std::pair(2 * (kLaunches - 1), 0.0));
  EXPECT_LE(PointsOf(whole, "pending work").size(), 2001u);
}

TEST(ActivityCounters, UsageIsTheShareOfEachOf200WindowsThatIsBusy) {
  Trace trace = OneDevice();
  AddKernel(0, 1000, 1500, &trace);  // half of the first 1000 ns
  AddKernel(1, 3000, 4000, &trace);  // all of the third
  AddKernel(2, 200'999, 201'000, &trace);
  const Points points = PointsOf(trace, "gpu_usage_ratio");
  ASSERT_EQ(points.size(), 201u);
  EXPECT_EQ(points[0], std::pair(int64_t{1000}, 0.5));
  EXPECT_EQ(points[1], std::pair(int64_t{2000}, 0.0));
  EXPECT_EQ(points[2], std::pair(int64_t{3000}, 1.0));
  EXPECT_EQ(points[199], std::pair(int64_t{200'000}, 0.001));
  EXPECT_EQ(points[200], std::pair(int64_t{201'000}, 0.0));
}

TEST(ActivityCounters, AliveTensorsAreThoseAllocatedAndNotGivenBack) {
  Trace trace;
  const auto add = [&](int64_t time, uint64_t address, int64_t bytes) {
    trace.allocations.start.push_back(time);
    trace.allocations.end.push_back(time);
    trace.allocations.writer.push_back(0);
    trace.allocations.bytes.push_back(bytes);
    trace.allocations.address.push_back(address);
  };
  add(10, 1, 64);
  add(20, 2, 64);
  add(30, 3, -64);  // was there before recording began
  add(40, 1, -64);
  add(50, 1, 128);
  EXPECT_EQ(PointsOf(trace, "alive tensors"), (Points{{10, 1}, {20, 2}, {40, 1}, {50, 2}}));
}

TEST(ActivityCounters, ALongCurveKeepsItsPeaks) {
  Trace trace = OneDevice();
  for (int64_t i = 0; i < 10'000; ++i) {
    if (i == 7777) AddKernel(777'699, 777'740, 777'745, &trace);  // two wait at once
    AddKernel(i * 100, i * 100 + 50, i * 100 + 90, &trace);
  }
  const Points points = PointsOf(trace, "pending work");
  EXPECT_LE(points.size(), 4000u);
  double most = 0;
  for (const auto& [time, value] : points) most = std::max(most, value);
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace ranktap::collector
