// Communication is called transfer only where the least duration over its group's ranks is known.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "collector/report/claims/claim.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

// Each step of 10 ms computes for 4 and communicates for 6, on each rank that is recorded.
InsightProgram RanksThat(std::string_view kernel, uint32_t recorded, uint32_t group) {
  InsightProgram program(recorded);
  for (uint32_t rank = 0; rank < recorded; ++rank) {
    for (uint64_t step = 0; step < 10; ++step) {
      const int64_t at = static_cast<int64_t>(step) * 10 * kMs;
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 4 * kMs});
      program.rank(rank).AddKernel({.name = kernel,
                                    .launched = at + 10 * kUs,
                                    .start = at + 4 * kMs,
                                    .end = at + 10 * kMs,
                                    .stream = 13});
      if (group > 0) program.rank(rank).DescribeCollective(step, 4 << 20, group);
    }
  }
  return program;
}

constexpr std::string_view kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
constexpr std::string_view kSendRecv = "ncclDevKernel_SendRecv";

std::string Exposed(const Run& run) { return TheFinding(run, "exposed-comm").finding; }

TEST(TransferClaim, WholeGroupsAreToldApartFromTheirWaits) {
  InsightProgram program = RanksThat(kAllReduce, 2, 2);
  EXPECT_FALSE(RulingOn(program.run(), Claim::kTransfer).is_undecided());
  EXPECT_NE(Exposed(program.run()).find("communication transfers on streams"), std::string::npos);
  EXPECT_EQ(Judge(program.run()).sentence.find("undecided"), std::string::npos);
  EXPECT_DOUBLE_EQ(CellAt<double>(TabulateKeyFigures(program.run(), {}), 0, "exposed_wait_percent"),
                   0);
}

TEST(TransferClaim, OneRankAloneDoesNotSayHowMuchOfItIsWaiting) {
  InsightProgram program = RanksThat(kAllReduce, 1, 2);
  const std::string why = "the other ranks of its groups are not recorded";
  EXPECT_EQ(RulingOn(program.run(), Claim::kTransfer).why, why);
  EXPECT_NE(Exposed(program.run()).find("transfers or waits, which is undecided because " + why),
            std::string::npos)
      << Exposed(program.run());
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_TRUE(
      sentence.ends_with("How much of it is waiting for other ranks is undecided: " + why + "."))
      << sentence;
  const Table figures = TabulateKeyFigures(program.run(), {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      figures.rows[0][ColumnNamed(figures, "exposed_wait_percent")]));
}

TEST(TransferClaim, HalfOfAGroupIsNotTheGroup) {
  InsightProgram program = RanksThat(kAllReduce, 2, 4);
  EXPECT_EQ(RulingOn(program.run(), Claim::kTransfer).why,
            "some ranks of its groups are not recorded");
}

TEST(TransferClaim, CallsBetweenTwoRanksThatNothingMatchesAreNotTransfer) {
  InsightProgram program = RanksThat(kSendRecv, 2, 0);
  EXPECT_EQ(RulingOn(program.run(), Claim::kTransfer).why,
            "100.0 % of it is in calls that cannot be matched across ranks");
}

}  // namespace
}  // namespace ranktap::collector
