// The rank of a process that only NCCL tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::TraceInfo;

TraceInfo InfoOf(const TracedRun& traced) {
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  if (traced.run().traces.size() != 1) {
    ADD_FAILURE() << traced.run().traces.size() << " traces; " << traced.load_problem();
    return {};
  }
  return traced.run().traces[0].info;
}

TEST(NcclRankTest, IsTheRankOfAProcessThatNoVariableNames) {
  const TraceInfo info = InfoOf(TracedRun({Host("nccl_ranks"), "8", "3", "abc"}));
  EXPECT_EQ(info.rank, 3u);
  EXPECT_EQ(info.world_size, 8u);
  EXPECT_EQ(info.rank_origin, "NCCL");
}

TEST(NcclRankTest, IsThatInTheLargestCommunicatorAndOfEqualOnesInTheFirst) {
  const TraceInfo info = InfoOf(
      TracedRun({Host("nccl_ranks"), "2", "1", "a", "8", "5", "b", "4", "2", "c", "8", "0", "d"}));
  EXPECT_EQ(info.rank, 5u);
  EXPECT_EQ(info.world_size, 8u);
}

TEST(NcclRankTest, IsNoneWhereOneProcessIsSeveral) {
  const TraceInfo info =
      InfoOf(TracedRun({Host("nccl_ranks"), "2", "0", "a", "2", "1", "a", "2", "0", "a"}));
  EXPECT_FALSE(info.rank.has_value()) << *info.rank;
}

TEST(NcclRankTest, LeavesALaunchersRankAlone) {
  const TraceInfo info =
      InfoOf(TracedRun({Host("nccl_ranks"), "2", "1", "a"},
                       {{"OMPI_COMM_WORLD_RANK", "6"}, {"OMPI_COMM_WORLD_SIZE", "8"}}));
  EXPECT_EQ(info.rank, 6u);
  EXPECT_EQ(info.rank_origin, "OMPI_COMM_WORLD_RANK");
}

TEST(NcclRankTest, OutdoesTheVariablesOfAJobThatIsSmallerThanTheCommunicator) {
  const TraceInfo info = InfoOf(
      TracedRun({Host("nccl_ranks"), "16", "11", "a"}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  EXPECT_EQ(info.rank, 11u);
  EXPECT_EQ(info.world_size, 16u);
}

TEST(NcclRankTest, SenselessNumbersAreNoRank) {
  const TraceInfo info = InfoOf(TracedRun({Host("nccl_ranks"), "8", "8", "a", "4", "-1", "b", "-5",
                                           "-7", "c", "2000000000", "3", "d"}));
  EXPECT_FALSE(info.rank.has_value()) << *info.rank;
}

}  // namespace
}  // namespace ranktap::agent_test
