// A gap is announced when it begins and when it ends.
#include "agent/sources/cupti/cupti_gap.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent::cupti {
namespace {

struct Announced {
  int reason = 0;
  uint64_t start = 0, end = 0;
  std::string detail;
};

std::vector<Announced> TakeGaps() {
  std::vector<Announced> gaps;
  for (const Announcement& each : TakeAnnounced()) {
    if (each.type != proto::FrameType::kGap) continue;
    Announced& gap = gaps.emplace_back();
    protozero::pbf_reader fields(each.payload);
    while (fields.next()) {
      switch (fields.tag()) {
        case 1:
          gap.reason = fields.get_enum();
          break;
        case 3:
          gap.start = fields.get_uint64();
          break;
        case 4:
          gap.end = fields.get_uint64();
          break;
        case 5:
          gap.detail = fields.get_string();
          break;
        default:
          fields.skip();
      }
    }
  }
  return gaps;
}

TEST(CuptiGapTest, AGapIsAnnouncedAsOpenAndThenWithItsEnd) {
  (void)TakeAnnounced();
  Gap gap("cupti");
  EXPECT_FALSE(gap.is_open());
  gap.Begin(proto::GapReason::kOtherProfiler, "the program called cuptiSubscribe");
  EXPECT_TRUE(gap.IsOpenFor(proto::GapReason::kOtherProfiler));
  EXPECT_FALSE(gap.IsOpenFor(proto::GapReason::kLevel));
  gap.End();
  EXPECT_FALSE(gap.is_open());
  EXPECT_FALSE(gap.IsOpenFor(proto::GapReason::kOtherProfiler));

  const std::vector<Announced> gaps = TakeGaps();
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].end, 0u);
  EXPECT_EQ(gaps[1].start, gaps[0].start);
  EXPECT_GE(gaps[1].end, gaps[1].start);
  for (const Announced& each : gaps) {
    EXPECT_EQ(each.reason, static_cast<int>(proto::GapReason::kOtherProfiler));
    EXPECT_EQ(each.detail, "the program called cuptiSubscribe");
  }
}

}  // namespace
}  // namespace ranktap::agent::cupti
