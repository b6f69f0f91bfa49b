// The table that `ranktap run` prints at its end.
#include "collector/report/text/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

TEST(SummaryTextTest, AStatusIsBrokenOverLinesAndNeverCut) {
  RunSummary summary;
  RankRow& row = summary.ranks.emplace_back();
  row.info.status = TraceStatus::kWriteFailed;
  row.info.detail = "write: the end of what the disk can take";
  row.info.file = "process-1234567.trace.part";
  const std::string text = FormatSummary(summary, {}, "/tmp/run", 80);
  for (const char* const word : {"write failed", "write:", "disk", "take"}) {
    EXPECT_THAT(text, testing::HasSubstr(word));
  }
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("faile..."))) << text;
}

}  // namespace
}  // namespace ranktap::collector
