// Records in the clock that the program's own client wants.
#include "agent/sources/cupti/cupti_client_clock.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "agent/core/host_clock.h"

namespace ranktap::agent::cupti {
namespace {

// Ticks of a third of a nanosecond, and from one moment on of a quarter.
uint64_t g_turns_ns = UINT64_MAX;
uint64_t At(uint64_t realtime_ns) {
  const uint64_t after = realtime_ns > g_turns_ns ? realtime_ns - g_turns_ns : 0;
  return realtime_ns * 3 + after;
}
uint64_t Now() { return At(ClockNs(CLOCK_REALTIME)); }

// A buffer of one kernel.
Result NextRecord(uint8_t* buffer, size_t, Record** record) {
  if (*record != nullptr) return kErrorMaxLimitReached;
  *record = reinterpret_cast<Record*>(buffer);
  return kSuccess;
}

void SpinUntil(uint64_t realtime_ns) {
  while (ClockNs(CLOCK_REALTIME) < realtime_ns) {
  }
}

int64_t Off(uint64_t ticks, uint64_t realtime_ns) {
  return std::llabs(static_cast<int64_t>(ticks - At(realtime_ns)));
}

class CuptiClientClockTest : public testing::Test {
 protected:
  void TearDown() override { client_clock::Set(nullptr); }

  static KernelRecord Translate(uint64_t start, uint64_t end) {
    Api api{};
    api.ActivityGetNextRecord = &NextRecord;
    KernelRecord kernel{};
    kernel.kind = Kind::kConcurrentKernel;
    kernel.start = start;
    kernel.end = end;
    client_clock::Translate(api, kVersion130, reinterpret_cast<uint8_t*>(&kernel), sizeof(kernel));
    return kernel;
  }
};

TEST_F(CuptiClientClockTest, TimesOfASessionsBeginningAreRightWhenARateHasChangedSince) {
  constexpr uint64_t kMillisecond = 1'000'000;
  g_turns_ns = UINT64_MAX;
  const uint64_t began = ClockNs(CLOCK_REALTIME);
  client_clock::Set(&Now);
  SpinUntil(began + 20 * kMillisecond);
  (void)Translate(began, began + 1);
  g_turns_ns = ClockNs(CLOCK_REALTIME);
  SpinUntil(g_turns_ns + 20 * kMillisecond);
  const uint64_t start = began + 10 * kMillisecond;
  const KernelRecord kernel = Translate(start, start + 1);
  // One line from the first to the last would be some 5,000,000 off.
  EXPECT_LT(Off(kernel.start, start), 1'000'000);
}

TEST_F(CuptiClientClockTest, NoTimeIsNoTimeAndWithoutAClockNothingChanges) {
  g_turns_ns = UINT64_MAX;
  EXPECT_EQ(Translate(5, 7).end, 7u);
  client_clock::Set(&Now);
  EXPECT_EQ(Translate(0, 0).start, 0u);
  const uint64_t now = ClockNs(CLOCK_REALTIME);
  EXPECT_LT(Off(Translate(now, now).start, now), 1'000'000);
}

TEST_F(CuptiClientClockTest, KindsWhoseTimesWeDoNotKnowAreTold) {
  EXPECT_TRUE(client_clock::KnowsTimesOf(static_cast<uint32_t>(Kind::kConcurrentKernel)));
  EXPECT_TRUE(client_clock::KnowsTimesOf(static_cast<uint32_t>(Kind::kExternalCorrelation)));
  constexpr uint32_t kUnifiedMemoryCounter = 24;
  EXPECT_FALSE(client_clock::KnowsTimesOf(kUnifiedMemoryCounter));
}

}  // namespace
}  // namespace ranktap::agent::cupti
