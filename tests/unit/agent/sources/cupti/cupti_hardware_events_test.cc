// Where the hardware event system may not be asked for.
#include "agent/sources/cupti/cupti_hardware_events.h"

#include <gtest/gtest.h>

#include "agent/sources/cupti/cupti_features.h"

namespace ranktap::agent::cupti {
namespace {

TEST(CuptiHardwareEventsTest, EachPlaceThatHasNoneIsSaidAndAnotherMayAsk) {
  EXPECT_EQ(WhyNoHardwareEvents({.version = kVersion134u1}), "");
  const auto says = [](const HardwareEventsPlace& place, const char* part) {
    return WhyNoHardwareEvents(place).find(part) != std::string::npos;
  };
  EXPECT_TRUE(says({.version = kVersion134u1 - 1}, "13.4 U1"));
  EXPECT_TRUE(says({.version = kVersion134u1, .late = true}, "CUDA was up"));
  EXPECT_TRUE(says({.version = kVersion134u1, .under_mps = true}, "MPS"));
  EXPECT_TRUE(says({.version = kVersion134u1, .under_wsl = true}, "WSL"));
  EXPECT_TRUE(says({.version = kVersion134u1, .on_mig = true}, "MIG"));
}

}  // namespace
}  // namespace ranktap::agent::cupti
