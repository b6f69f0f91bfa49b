#include "collector/facts/samples/sampled_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/collector/facts/samples/sampled_trace.h"

namespace ranktap::collector {
namespace {

TEST(SampledSpansTest, EqualFramesOfLooksThatFollowEachOtherAreOneSpan) {
  SampledTrace sampled;
  // decode, then main:97 itself, then main:98; nobody looked from 40 to 50; another thread.
  sampled.AddSamples(
      "[40,3,1,1,0,10,9]\n[40,3,2,2,10,30,1]\n[40,1,1,1,30,40,8]\n[40,1,1,1,50,60,8]\n"
      "[40,4,1,1,60,70,7]\n[41,2,1,1,0,70,5]\n");
  using Seen = std::tuple<uint32_t, uint32_t, uint32_t, int64_t, int64_t, int64_t>;
  std::vector<Seen> seen;
  for (const SampledSpan& span : SpansOf(HostSamples(sampled.trace()))) {
    seen.emplace_back(span.thread, span.frame, span.depth, span.start, span.end, span.cpu_ns);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(Seen{40, 1, 0, 0, 40, 18}, Seen{40, 2, 1, 0, 30, 10},
                                           Seen{40, 3, 2, 0, 30, 10}, Seen{40, 1, 0, 50, 60, 8},
                                           Seen{40, 4, 0, 60, 70, 7}, Seen{41, 1, 0, 0, 70, 5},
                                           Seen{41, 2, 1, 0, 70, 5}));
}

}  // namespace
}  // namespace ranktap::collector
