// What a sweep over windows says of them is what a sweep over all says.
#include "collector/facts/causes/device_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// Work of three kinds on three streams, some of it long, with pauses; the host waits now and then.
InsightProgram Tangle(uint32_t seed) {
  std::mt19937 random(seed);
  const auto upto = [&random](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  InsightProgram program(1);
  int64_t host = 0, device = 0;
  for (int i = 0; i < 120; ++i) {
    host += upto(8 * kUs);
    device = std::max(host, device + upto(12 * kUs) - 4 * kUs);
    const int64_t length = upto(20) == 0 ? 300 * kUs : upto(15 * kUs);
    if (upto(5) == 0) {
      program.rank(0).AddCopy({.bytes = 1,
                               .called = host,
                               .returned = host + kUs,
                               .start = device,
                               .end = device + length,
                               .stream = 9});
    } else {
      const bool is_transfer = upto(4) == 0;
      program.rank(0).AddKernel({.name = is_transfer ? "ncclDevKernel_AllReduce" : "gemm",
                                 .launched = host,
                                 .start = device,
                                 .end = device + length,
                                 .stream = is_transfer ? 13u : 7u,
                                 .launch_ns = upto(9) == 0 ? 40 * kUs : kUs});
    }
    if (upto(15) != 0) continue;
    const int64_t waited = std::max(host, device) + upto(40 * kUs);
    program.rank(0).AddCall("cudaDeviceSynchronize", host + 2 * kUs, waited);
    host = waited;
    device = std::max(device, waited) + upto(60 * kUs);
  }
  return program;
}

using Piece = std::tuple<int64_t, int64_t, Cause, uint32_t>;

// The parts of it that lie in the windows.
class InWindows {
 public:
  explicit InWindows(const std::vector<Interval>& windows) : windows_(windows) {}
  void operator()(Cause cause, int64_t start, int64_t end, uint32_t span) {
    for (const auto& [from, until] : windows_) {
      const int64_t begin = std::max(start, from), finish = std::min(end, until);
      if (begin < finish) pieces.emplace_back(begin, finish, cause, span);
    }
  }
  std::vector<Piece> pieces;

 private:
  const std::vector<Interval>& windows_;
};

TEST(DeviceSweep, SaysOfWindowsWhatItSaysOfAll) {
  size_t compared = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    InsightProgram program = Tangle(seed);
    const Trace& trace = program.run().traces[0];
    const DeviceSpans& spans = DeviceTimeline(trace);
    std::mt19937 random(seed);
    const auto upto = [&random](int64_t most) {
      return std::uniform_int_distribution<int64_t>(0, most)(random);
    };
    const int64_t last = spans.back().start + 500 * kUs;
    std::vector<Interval> windows;
    for (int64_t at = -20 * kUs + upto(60 * kUs); at < last;) {
      const int64_t end = at + 1 + upto(seed % 2 == 0 ? 5 * kUs : 200 * kUs);
      windows.emplace_back(at, end);
      at = end + upto(seed % 3 == 0 ? 3 * kUs : 150 * kUs);
    }
    const std::vector<Interval> waits = {{spans.front().start, spans.front().start + 100 * kUs}};
    const int64_t from = upto(1) == 0 ? spans.front().start : spans[spans.size() / 3].start + 1;
    InWindows of_all(windows), of_windows(windows);
    SweepDevice(trace, waits, from, last, of_all);
    SweepDeviceWithin(trace, waits, windows, from, last, of_windows);
    EXPECT_EQ(of_windows.pieces, of_all.pieces);
    compared += of_all.pieces.size();
  }
  EXPECT_GT(compared, 10'000u);
}

}  // namespace
}  // namespace ranktap::collector
