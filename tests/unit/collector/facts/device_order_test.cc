// What device work and waiting calls came after, in traces whose streams and calls are planted.
#include "collector/facts/device_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/causes/critical_path.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

// Microseconds, here and below.
std::string On(int stream, const std::string& name, int start, int length, int correlation) {
  return Span("kernel", name, start, length,
              R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
                  std::to_string(correlation),
              0, stream);
}
std::string WaitsFor(int stream, int on, int called, int correlation) {
  return Call("cudaStreamWaitEvent", called, 1, correlation) + "," +
         Span("cuda_sync", "Stream Wait Event", called, 1,
              R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
                  std::to_string(correlation) +
                  R"(,"cuda_sync_kind":"Stream Wait Event","wait_on_stream":)" +
                  std::to_string(on) +
                  R"(,"wait_on_cuda_event_record_corr_id":0,"wait_on_cuda_event_id":1)",
              0, stream);
}
std::string SyncOf(int stream, int called, int length, int correlation) {
  return Call("cudaStreamSynchronize", called, length, correlation) + "," +
         Span("cuda_sync", "Stream Synchronize", called, length,
              R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
                  std::to_string(correlation) + R"(,"cuda_sync_kind":"Stream Synchronize")",
              0, stream);
}

TEST(DeviceOrder, WorkComesAfterItsStreamAndAfterEachEventThatItsStreamWasToldOf) {
  const collector::Run run = OpenText(
      File("", Call("cudaLaunchKernel", 10, 5, 1) + "," + Call("cudaLaunchKernel", 16, 5, 2) + "," +
                   Call("cudaLaunchKernel", 22, 5, 3) + "," + WaitsFor(9, 7, 30, 4) + "," +
                   WaitsFor(9, 8, 32, 5) + "," + Call("cudaLaunchKernel", 40, 5, 6) + "," +
                   Call("cudaLaunchKernel", 46, 5, 7) + "," + On(7, "a", 50, 100, 1) + "," +
                   On(8, "b", 60, 100, 2) + "," + On(9, "c", 70, 20, 3) + "," +
                   On(9, "d", 160, 10, 6) + "," + On(9, "e", 175, 10, 7)));
  const DeviceOrder order(run.traces[0]);  // a to e are 0 to 4
  EXPECT_EQ(order.Before(0), kNone);
  EXPECT_EQ(order.Before(3), 2u);
  EXPECT_EQ(order.Before(4), 3u);
  EXPECT_THAT(order.EventWaits(), UnorderedElementsAre(Pair(3u, 0u), Pair(3u, 1u)));
  EXPECT_EQ(order.LastEnded(run.traces[0].kernels.end[2]), 2u);
}

// Stream 8 ends in the middle of a wait for stream 7, and a thread launches more on 7 meanwhile.
collector::Run WaitsForOneStream() {
  return OpenText(
      File("", Call("cudaLaunchKernel", 10, 5, 1) + "," + Call("cudaLaunchKernel", 16, 5, 2) + "," +
                   SyncOf(7, 30, 200, 3) + "," + Call("cudaLaunchKernel", 100, 5, 4) + "," +
                   On(7, "awaited", 20, 100, 1) + "," + On(8, "other", 25, 200, 2) + "," +
                   On(7, "later", 125, 50, 4) + "," + Call("cudaLaunchKernel", 240, 5, 5) + "," +
                   On(7, "last", 250, 100, 5)));
}

TEST(DeviceOrder, ACallWaitsForWhatWasLaunchedBeforeItOnItsOwnStream) {
  const collector::Run run = WaitsForOneStream();
  const DeviceOrder order(run.traces[0]);
  ASSERT_EQ(order.returns().size(), 1u);
  EXPECT_THAT(order.AwaitedBy(order.returns()[0]), ElementsAre(0u));
  EXPECT_EQ(order.returns()[0].latest, 0u);
}

TEST(DeviceOrder, TheCriticalPathGoesOnWhereTheCallWaited) {
  const collector::Run run = WaitsForOneStream();
  std::vector<std::pair<std::string, int64_t>> path;
  FindCriticalPath(run).ForEach([&](const PathSegment& piece) {
    if (piece.kernel == kNone) return;
    path.emplace_back(run.traces[0].dictionary.String(piece.kernel), piece.ns);
  });
  EXPECT_THAT(path, ElementsAre(Pair("awaited", 100'000), Pair("last", 100'000)));
}

TEST(DeviceOrder, WorkThatEndsWithinTheDoubtOfTheClocksWasWaitedFor) {
  collector::Run run = OpenText(
      File("", Call("cudaLaunchKernel", 10, 5, 1) + "," + Call("cudaLaunchKernel", 16, 5, 2) + "," +
                   Call("cudaDeviceSynchronize", 30, 90, 3) + "," + On(7, "first", 20, 50, 1) +
                   "," + On(7, "second", 72, 49, 2)));
  EXPECT_EQ(DeviceOrder(run.traces[0]).returns()[0].latest, 0u);
  EXPECT_EQ(DeviceOrder(run.traces[0], 1'000).returns()[0].latest, 1u);
}

// Work on three streams that overlaps, and calls that wait for one of them or for all.
collector::Run Tangle(uint32_t seed) {
  std::mt19937 random(seed);
  const auto upto = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  std::string events;
  int time = 0, correlation = 0;
  std::array<int, 3> free{};  // by stream: when its work ends
  for (int i = 0; i < 60; ++i) {
    time += upto(20);
    ++correlation;
    const int stream = upto(20) == 0 ? 2 : upto(1);
    if (upto(9) == 0) {
      const bool is_for_all = upto(1) == 0;
      const int length = std::max(1, free[static_cast<size_t>(stream)] - time + upto(8) - 2);
      events += (is_for_all ? Call("cudaDeviceSynchronize", time, length, correlation)
                            : SyncOf(7 + stream, time, length, correlation)) +
                ",";
      time += length;
      continue;
    }
    const int start = std::max(time + upto(30), free[static_cast<size_t>(stream)]);
    const int length = upto(40);
    free[static_cast<size_t>(stream)] = start + length;
    events += Call("cudaLaunchKernel", time, 1, correlation) + "," +
              On(7 + stream, "k", start, length, correlation) + ",";
  }
  events.pop_back();
  return OpenText(File("", events));
}

TEST(NearbyOrder, SaysWhatTheWholeOrderSays) {
  size_t waited = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const collector::Run run = Tangle(seed);
    const Trace& trace = run.traces[0];
    const DeviceSpans& spans = DeviceTimeline(trace);
    const DeviceOrder whole(trace);
    NearbyOrder nearby(trace, true), at_once(trace, false);
    const auto works = static_cast<uint32_t>(spans.size());
    for (uint32_t i = 0; i < works; ++i) {
      EXPECT_EQ(nearby.Before(i), whole.Before(i)) << i;
      for (const int64_t time : {spans[i].start, spans[i].end, spans[i].end - 1}) {
        EXPECT_EQ(nearby.LastEnded(time, (i * 7) % (works + 1)), whole.LastEnded(time)) << i;
        EXPECT_EQ(at_once.LastEnded(time, i), whole.LastEnded(time)) << i;
      }
    }
    ASSERT_EQ(nearby.returns().size(), whole.returns().size());
    for (size_t i = 0; i < whole.returns().size(); ++i) {
      EXPECT_EQ(nearby.LatestOf(nearby.returns()[i], works / 2), whole.returns()[i].latest) << i;
      EXPECT_EQ(at_once.LatestOf(at_once.returns()[i], 0), whole.returns()[i].latest) << i;
      waited += whole.returns()[i].latest != kNone ? 1 : 0;
    }
  }
  EXPECT_GT(waited, 500u);
}

}  // namespace
}  // namespace ranktap::collector
