// Which files `--keep` has and which go, by names, sizes and instants alone.
#include "collector/ingest/store/kept_segments.h"

#include <gmock/gmock.h>

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = 1'000'000'000;

// A segment of ten seconds with one file of each of two ranks.
void AddSegment(KeptSegments* kept, int number, uint64_t bytes = 100) {
  kept->NoteEvents(bytes);
  kept->Add("a", "a" + std::to_string(number), bytes);
  kept->Add("b", "b" + std::to_string(number), 1);
  kept->EndSegment(static_cast<uint64_t>(number + 1) * 10 * kSecond);
}

TEST(KeptSegmentsTest, TheOldestGoesOnceTheOthersHoldTheWholeTime) {
  KeptSegments kept({.ns = 60 * kSecond}, 0);
  for (int i = 0; i < 6; ++i) {
    AddSegment(&kept, i);
    EXPECT_THAT(kept.TakeOld(), IsEmpty()) << i;
  }
  AddSegment(&kept, 6);
  EXPECT_THAT(kept.TakeOld(), ElementsAre("a0", "b0"));
  EXPECT_FALSE(kept.Has("a0"));
  EXPECT_THAT(kept.FilesOf("b"), ElementsAre("b1", "b2", "b3", "b4", "b5", "b6"));
}

TEST(KeptSegmentsTest, OfTooManyBytesOfOneRankTheOldestGoesOnAllRanks) {
  KeptSegments kept({.ns = 3600 * kSecond, .bytes = 1000}, 0);
  AddSegment(&kept, 0, 600);
  AddSegment(&kept, 1, 300);
  EXPECT_THAT(kept.TakeOld(), IsEmpty());
  AddSegment(&kept, 2, 300);
  EXPECT_THAT(kept.TakeOld(), ElementsAre("a0", "b0"));
  EXPECT_THAT(kept.TakeOld(), IsEmpty());
}

TEST(KeptSegmentsTest, ASegmentEndsByTimeOrBytesAndNeverWithoutEvents) {
  KeptSegments kept({.ns = 60 * kSecond, .bytes = 6000}, 0);
  EXPECT_FALSE(kept.IsDue(3600 * kSecond)) << "what came before ranks fell silent stays";
  kept.NoteEvents(10);
  EXPECT_FALSE(kept.IsDue(9 * kSecond));
  EXPECT_TRUE(kept.IsDue(10 * kSecond));
  kept.NoteEvents(1000);
  EXPECT_TRUE(kept.IsDue(1 * kSecond));
  kept.EndSegment(1 * kSecond);
  EXPECT_FALSE(kept.IsDue(3600 * kSecond));
}

TEST(KeptSegmentsTest, AnIntervalIsOfWholeSegmentsTheSameOnAllRanks) {
  KeptSegments kept({.ns = 60 * kSecond}, 0);
  for (int i = 0; i < 5; ++i) AddSegment(&kept, i);
  const KeptSegments::Interval interval = kept.Since(25 * kSecond);
  EXPECT_EQ(interval.begin_ns, 20 * kSecond);
  EXPECT_EQ(interval.end_ns, 50 * kSecond);
  EXPECT_THAT(interval.files.at("a"), ElementsAre("a2", "a3", "a4"));
  EXPECT_THAT(interval.files.at("b"), ElementsAre("b2", "b3", "b4"));
}

TEST(KeptSegmentsTest, ItKnowsSinceWhenAndHowMuchOfEachProcessThereIs) {
  KeptSegments kept({.ns = 20 * kSecond}, 7);
  EXPECT_EQ(kept.since_ns(), 7u);
  for (int i = 0; i < 4; ++i) AddSegment(&kept, i);
  (void)kept.TakeOld();
  EXPECT_EQ(kept.since_ns(), 20 * kSecond);
  EXPECT_EQ(kept.BytesOf("a"), 200u);
  kept.Replace("a", "joined", 150);
  EXPECT_EQ(kept.BytesOf("a"), 150u);
  EXPECT_EQ(kept.BytesOf("b"), 2u);
  EXPECT_EQ(kept.BytesOf("c"), 0u);
}

}  // namespace
}  // namespace ranktap::collector
