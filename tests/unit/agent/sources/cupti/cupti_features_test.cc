#include "agent/sources/cupti/cupti_features.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

TEST(CuptiFeaturesTest, BuffersPerThreadWhereverAFlushIsSafeBesideThem) {
  for (const uint32_t version : {kVersion118, kVersion120, kVersion124, kVersion125, 24u, 25u}) {
    EXPECT_FALSE(FeaturesOf(version).ask_for_buffers_per_thread) << version;
  }
  EXPECT_TRUE(FeaturesOf(kVersion128).ask_for_buffers_per_thread);
  EXPECT_TRUE(FeaturesOf(kVersion129).ask_for_buffers_per_thread);
  EXPECT_TRUE(FeaturesOf(kVersion130).ask_for_buffers_per_thread);
}

TEST(CuptiFeaturesTest, ABufferIsRefusedOnlyWhereCuptiTakesNoForAnAnswer) {
  EXPECT_FALSE(FeaturesOf(kVersion118).may_refuse_buffers);
  EXPECT_FALSE(FeaturesOf(kVersion128).may_refuse_buffers);
  EXPECT_TRUE(FeaturesOf(kVersion129).may_refuse_buffers);
  EXPECT_TRUE(FeaturesOf(kVersion130).may_refuse_buffers);
}

TEST(CuptiFeaturesTest, CuptiTellsOfItsEndFrom122On) {
  EXPECT_FALSE(FeaturesOf(kVersion120).tells_its_end);
  EXPECT_TRUE(FeaturesOf(kVersion122).tells_its_end);
}

TEST(CuptiFeaturesTest, KnownFaultsEndWhereNvidiaSaysTheyDo) {
  EXPECT_TRUE(FeaturesOf(kVersion122).thread_id_type_once);
  EXPECT_FALSE(FeaturesOf(kVersion123).thread_id_type_once);
  EXPECT_TRUE(FeaturesOf(kVersion130).graph_ids_wrong_in_later_sessions);
  EXPECT_FALSE(FeaturesOf(kVersion131u1).graph_ids_wrong_in_later_sessions);
  EXPECT_TRUE(FeaturesOf(kVersion130).kernel_kind_stays);
  EXPECT_FALSE(FeaturesOf(kVersion130u1).kernel_kind_stays);
  EXPECT_FALSE(FeaturesOf(kVersion130).calls_slow_down);
  EXPECT_TRUE(FeaturesOf(kVersion132 + 1).calls_slow_down);
  EXPECT_FALSE(FeaturesOf(kVersion133).calls_slow_down);
  EXPECT_TRUE(FeaturesOf(kVersion134u1 - 1).cpu_use_grows);
  EXPECT_FALSE(FeaturesOf(kVersion134u1).cpu_use_grows);
}

}  // namespace
}  // namespace ranktap::agent::cupti
