// The table that `ranktap run` prints at its end.
#include "collector/report/text/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(SummaryTextTest, ItFits24LinesFromTheVerdictToTheNextCommand) {
  RunSummary summary;
  summary.verdict = "Most of each 412 ms step was lost to communication: 21 ms (5.0 %), on rank 3";
  summary.ranks.resize(64);
  summary.kernels.resize(30);
  summary.ranges.resize(30);
  summary.ranges[0].name = "step";
  summary.ranges[0].unfinished = 1;
  for (int i = 0; i < 3; ++i) summary.ranges[0].time.Add(1000);
  summary.notes = {std::string(200, 'x'), "b", "c", "d"};
  summary.lost = 3;
  const std::string text = FormatSummary(summary, {}, "/tmp/run", 80);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24) << text;
  EXPECT_TRUE(text.starts_with("ranktap: Most of each 412 ms step")) << text;
  EXPECT_TRUE(text.ends_with("  next: ranktap report /tmp/run\n")) << text;
  EXPECT_THAT(text, testing::ContainsRegex("step +2 "));
}

}  // namespace
}  // namespace ranktap::collector
