#include "collector/launch/resource_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ResourceAttributesTest, PairsAreTakenApartAndDecoded) {
  EXPECT_THAT(
      ResourceAttributes("k8s.pod.name=trainer-0, service.version = 1.2%2C3 ,host.type=a%20b", ""),
      ElementsAre(Pair("host.type", "a b"), Pair("k8s.pod.name", "trainer-0"),
                  Pair("service.version", "1.2,3")));
}

TEST(ResourceAttributesTest, TheServicesOwnVariableHasTheLastWord) {
  EXPECT_THAT(ResourceAttributes("service.name=old", "trainer"),
              ElementsAre(Pair("service.name", "trainer")));
}

TEST(ResourceAttributesTest, WhatIsNoPairIsLeftOut) {
  EXPECT_THAT(ResourceAttributes("", ""), IsEmpty());
  EXPECT_THAT(ResourceAttributes("word,=value,broken=%2,worse=%zz,end=%", ""), IsEmpty());
  EXPECT_THAT(ResourceAttributes("empty=", ""), ElementsAre(Pair("empty", "")));
}

}  // namespace
}  // namespace ranktap::collector
