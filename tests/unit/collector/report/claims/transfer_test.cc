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
  EXPECT_NE(
      Exposed(program.run())
          .find("exposed communication runs (how much of it waits is undecided: " + why + ")"),
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

TEST(TransferClaim, TablesSayExposedCommunicationWhereItIsUndecided) {
  for (const uint32_t recorded : {1u, 2u}) {
    InsightProgram program = RanksThat(kAllReduce, recorded, 2);
    const char* const word = recorded == 1 ? "exposed communication" : "exposed transfer";
    for (const auto tabulate : {TabulateWaterfall, TabulateWaterfallByRank, TabulateVerdict}) {
      EXPECT_EQ(CellAt<int64_t>(tabulate(program.run(), {}),
                                RowWith<std::string>(tabulate(program.run(), {}), "cause", word),
                                tabulate == TabulateVerdict ? "loss_ns" : "mean_ns"),
                6 * kMs);
    }
  }
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
  EXPECT_EQ(Exposed(program.run()).find("transfer"), std::string::npos);
  EXPECT_EQ(Judge(program.run()).sentence.find("wait for rank"), std::string::npos);
}

// Eight ranks in steps of 20 ms, all but one of which compute for 4 ms and rank 5 for 9. An
// all-to-all follows, to NCCL a kernel of sends and receives, on another stream in each process. It
// ends on all ranks 12 ms into the step. `op`: what launches it; no file says its group.
InsightProgram AllToAllOfEight(std::string_view op) {
  InsightProgram program(8);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    InsightRank& of = program.rank(rank);
    const int64_t computes = rank == 5 ? 9 * kMs : 4 * kMs;
    for (int64_t at = 0; at < 10 * 20 * kMs; at += 20 * kMs) {
      of.AddStep(at, at + 20 * kMs);
      of.AddKernel({.launched = at, .start = at, .end = at + computes});
      of.AddOperator(op, at + 20 * kUs, at + 40 * kUs);
      of.AddKernel({.name = kSendRecv,
                    .launched = at + 30 * kUs,
                    .start = at + computes,
                    .end = at + 12 * kMs,
                    .stream = 13 + rank});
      Kernels& kernels = of.trace().kernels;
      kernels.op.PadTo(kernels.size());
      kernels.op[kernels.size() - 1] = static_cast<uint32_t>(of.trace().operators.size());
      of.AddKernel({.launched = at + 50 * kUs, .start = at + 12 * kMs, .end = at + 20 * kMs});
    }
  }
  return program;
}

TEST(TransferClaim, SendsAndReceivesThatAreAnAllToAllAreMatchedByTheirOperatorAndOrder) {
  InsightProgram program = AllToAllOfEight("c10d::alltoall_base_");
  EXPECT_FALSE(RulingOn(program.run(), Claim::kTransfer).is_undecided());
  const Table comm = TabulateComm(program.run(), {});
  ASSERT_EQ(comm.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(comm, 0, "type"), "alltoall");
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "calls"), 10);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "transfer_ns"), 3 * kMs);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "last_rank"), 5);
  // Seven of eight wait for 5 ms each.
  EXPECT_NE(
      Judge(program.run()).sentence.find("The largest loss is 5.000 ms of each 20.00 ms step"),
      std::string::npos)
      << Judge(program.run()).sentence;
  EXPECT_NE(Judge(program.run()).sentence.find("rank 5"), std::string::npos);
}

TEST(TransferClaim, SendsAndReceivesOfAPipelineAreNotMatchedAsOne) {
  InsightProgram program = AllToAllOfEight("c10d::send");
  EXPECT_TRUE(RulingOn(program.run(), Claim::kTransfer).is_undecided());
  EXPECT_EQ(Judge(program.run()).sentence.find("wait for rank"), std::string::npos);
}

TEST(TransferClaim, RanksThatCallItUnequallyOftenAreNotMatchedByOrder) {
  InsightProgram program = RanksThat(kAllReduce, 2, 0);
  EXPECT_FALSE(RulingOn(program.run(), Claim::kTransfer).is_undecided());
  InsightProgram uneven = RanksThat(kAllReduce, 2, 0);
  uneven.rank(1).AddKernel({.name = kAllReduce,
                            .launched = 99 * kMs,
                            .start = 100 * kMs,
                            .end = 101 * kMs,
                            .stream = 13});
  EXPECT_EQ(RulingOn(uneven.run(), Claim::kTransfer).why,
            "100.0 % of it is in calls that cannot be matched across ranks");
}

// Two ranks of 128 make as many calls of a type, and may share no group.
TEST(TransferClaim, RanksOfALargerJobAreNotMatchedByOrder) {
  InsightProgram program = RanksThat(kAllReduce, 2, 0);
  for (uint32_t rank = 0; rank < 2; ++rank) program.rank(rank).trace().info.world_size = 128;
  EXPECT_TRUE(RulingOn(program.run(), Claim::kTransfer).is_undecided());
}

TEST(TransferClaim, DevicesOfOneProcessAreNotSaidToBeMissingRanks) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    for (uint32_t device = 0; device < 2; ++device) {
      program->AddKernel({.name = kAllReduce,
                          .launched = at + device,
                          .start = at + 1 * kMs,
                          .end = at + 9 * kMs,
                          .stream = 13,
                          .device = device,
                          .launch_ns = 1});
    }
  }
  EXPECT_EQ(RulingOn(program.run(), Claim::kTransfer).why,
            "one process runs it on several devices, whose calls are not matched");
}

}  // namespace
}  // namespace ranktap::collector
