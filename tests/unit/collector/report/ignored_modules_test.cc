// What modules of an ignored type computed counts where DeepSpeed counts it.
#include "collector/report/framework/ignored_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

// Net of 100: its own 10, a Block of 60 (own 0, Linear 40, GRU 20), a Linear of 30.
ModelProfile Net() {
  ModelProfile profile;
  profile.modules = {
      {.type = "Net", .children = {1, 4}, .flops = 100, .macs = 50, .forward_ns = 9},
      {.type = "Block", .children = {2, 3}, .flops = 60, .macs = 30, .forward_ns = 6},
      {.type = "Linear", .flops = 40, .macs = 20, .forward_ns = 4},
      {.type = "GRU", .flops = 20, .macs = 10, .forward_ns = 1},
      {.type = "Linear", .flops = 30, .macs = 15, .forward_ns = 2}};
  return profile;
}

std::vector<int64_t> Flops(const ModelProfile& profile) {
  std::vector<int64_t> flops;
  for (const ModuleProfile& module : profile.modules) flops.push_back(module.flops);
  return flops;
}

TEST(IgnoredModulesTest, WhatTheyComputeCountsForTheModuleAroundThem) {
  ModelProfile profile = Net();
  EXPECT_FALSE(IgnoreModules({"Linear"}, &profile));
  EXPECT_THAT(Flops(profile), testing::ElementsAre(100, 60, 0, 20, 0));
  EXPECT_EQ(profile.modules[0].macs, 50);
  EXPECT_EQ(profile.modules[2].forward_ns, 0);
}

TEST(IgnoredModulesTest, AMiddleOneHandsOnAndHasItsChildrensLatency) {
  ModelProfile profile = Net();
  EXPECT_FALSE(IgnoreModules({"Linear", "Block"}, &profile));
  EXPECT_THAT(Flops(profile), testing::ElementsAre(100, 20, 0, 20, 0));
  EXPECT_EQ(profile.modules[1].forward_ns, 1);
}

TEST(IgnoredModulesTest, ALayerThatDeepSpeedCountsAsAWholeVanishesAsTheRootDoes) {
  ModelProfile profile = Net();
  EXPECT_FALSE(IgnoreModules({"GRU"}, &profile));
  EXPECT_THAT(Flops(profile), testing::ElementsAre(80, 40, 40, 0, 30));
  profile = Net();
  EXPECT_FALSE(IgnoreModules({"Net"}, &profile));
  EXPECT_EQ(profile.modules[0].flops, 90);
}

TEST(IgnoredModulesTest, ATypeThatTheModelHasNotIsNamedWithThoseItHas) {
  ModelProfile profile = Net();
  const auto failure = IgnoreModules({"Conv2d"}, &profile);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message,
            "the model has no module of the type 'Conv2d'; it has Block, GRU, Linear, Net");
  EXPECT_THAT(Flops(profile), testing::ElementsAre(100, 60, 40, 20, 30));
}

}  // namespace
}  // namespace ranktap::collector
