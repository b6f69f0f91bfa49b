#include "agent/sources/cupti/cupti_second_api.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace ranktap::agent::cupti {
namespace {

// As a program's parameters lie in memory: their size, three words, one byte.
std::array<uint8_t, 40> ParametersOf(size_t size, uint8_t allows) {
  std::array<uint8_t, 40> bytes{};
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes[32] = allows;
  return bytes;
}

TEST(SecondApiTest, OthersMaySubscribeWhereTheParametersSaySo) {
  EXPECT_TRUE(second_api::AllowsOthers(ParametersOf(40, 1).data()));
  EXPECT_TRUE(second_api::AllowsOthers(ParametersOf(33, 1).data()));
  EXPECT_FALSE(second_api::AllowsOthers(ParametersOf(40, 0).data()));
  EXPECT_FALSE(second_api::AllowsOthers(ParametersOf(40, 2).data()));
  EXPECT_FALSE(second_api::AllowsOthers(nullptr));
  EXPECT_FALSE(second_api::AllowsOthers(ParametersOf(32, 1).data())) << "13.0's end before it";
}

// A library of the first API alone: nothing of it is touched.
TEST(SecondApiTest, ALibraryWithoutTheSecondApiIsUsedAsItIs) {
  Api api{};
  api.Subscribe = [](Subscriber*, CallbackFunction, void*) -> Result { return kSuccess; };
  const auto before = api.Subscribe;
  second_api::TakePlace(api, nullptr);
  EXPECT_EQ(api.Subscribe, before);
  EXPECT_FALSE(second_api::IsThere());
  EXPECT_FALSE(second_api::IsOn());
}

TEST(SecondApiTest, HardwareEventsAndTheModeOfGraphsAreOfAllSubscribers) {
  EXPECT_TRUE(second_api::IsOfAll(13));
  EXPECT_TRUE(second_api::IsOfAll(20));
  EXPECT_FALSE(second_api::IsOfAll(11)) << "user-defined records";
}

}  // namespace
}  // namespace ranktap::agent::cupti
