#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/core/process_info.h"
#include "agent/core/rank_identity.h"

namespace ranktap::agent {
namespace {

using ::testing::ElementsAre;

RankIdentity Find(std::vector<const char*> environment,
                  std::optional<uint32_t> explicit_rank = std::nullopt) {
  return FindRankIdentity(environment, explicit_rank);
}

TEST(RankIdentityTest, Torchrun) {
  const auto identity =
      Find({"RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=1",
            "TORCHELASTIC_RUN_ID=run7", "TORCHELASTIC_RESTART_COUNT=2"});
  EXPECT_EQ(identity.rank, 5u);
  EXPECT_EQ(identity.local_rank, 1u);
  EXPECT_EQ(identity.world_size, 8u);
  EXPECT_EQ(identity.local_world_size, 4u);
  EXPECT_EQ(identity.node_rank, 1u);
  EXPECT_EQ(identity.restart, 2u);
  EXPECT_EQ(identity.job, "run7");
  EXPECT_EQ(identity.origin, "RANK");
}

TEST(RankIdentityTest, TorchrunInsideMpirunIsTheInnerOne) {
  EXPECT_EQ(Find({"OMPI_COMM_WORLD_RANK=0", "RANK=3", "LOCAL_RANK=3"}).rank, 3u);
}

TEST(RankIdentityTest, OpenMpiBeforeABareRankVariable) {
  const auto identity = Find({"RANK=9", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
                              "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_NODE_RANK=2"});
  EXPECT_EQ(identity.rank, 2u);
  EXPECT_EQ(identity.world_size, 4u);
  EXPECT_FALSE(identity.node_rank.has_value()) << "OMPI's node rank is no node's rank";
}

TEST(RankIdentityTest, SbatchAloneIsNoRank) {
  EXPECT_FALSE(Find({"SLURM_PROCID=0", "SLURM_JOB_ID=12"}).rank.has_value());
  EXPECT_FALSE(Find({"SLURM_PROCID=0", "SLURM_STEP_ID=0", "SLURM_NTASKS=1"}).rank.has_value());
}

TEST(RankIdentityTest, SrunStepOfSeveralTasks) {
  const auto identity = Find({"SLURM_PROCID=3", "SLURM_STEP_ID=0", "SLURM_NTASKS=4",
                              "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_JOB_ID=99"});
  EXPECT_EQ(identity.rank, 3u);
  EXPECT_EQ(identity.node_rank, 1u);
  EXPECT_EQ(identity.job, "99");
  EXPECT_EQ(identity.origin, "SLURM_PROCID");
}

TEST(RankIdentityTest, AnExplicitRankWinsAndKeepsTheRest) {
  const auto identity = Find({"RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8"}, 0);
  EXPECT_EQ(identity.rank, 0u);
  EXPECT_EQ(identity.world_size, 8u);
  EXPECT_EQ(identity.origin, "RANKTAP_RANK");
}

TEST(RankIdentityTest, RaySetsTorchrunsNamesAndItsOwnJob) {
  const auto identity = Find({"RAY_JOB_ID=01000000", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4",
                              "LOCAL_WORLD_SIZE=2", "NODE_RANK=1"});
  EXPECT_EQ(identity.rank, 3u);
  EXPECT_EQ(identity.node_rank, 1u);
  EXPECT_EQ(identity.job, "01000000");
}

TEST(RankIdentityTest, MpichAndPmix) {
  const auto mpich = Find({"PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=4"});
  EXPECT_EQ(mpich.rank, 1u);
  EXPECT_EQ(mpich.local_world_size, 4u);
  const auto pmix = Find({"PMIX_RANK=2", "PMIX_NAMESPACE=job@1", "SLURM_PROCID=0"});
  EXPECT_EQ(pmix.rank, 2u);
  EXPECT_EQ(pmix.job, "job@1");
}

TEST(RankIdentityTest, DeepSpeedAndAccelerateAreTorchrunsVariables) {
  const auto identity = Find(
      {"RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "CROSS_RANK=0", "CROSS_SIZE=1", "LOCAL_SIZE=2"});
  EXPECT_EQ(identity.rank, 1u);
  EXPECT_EQ(identity.origin, "RANK");
}

TEST(RankIdentityTest, APodsRankIsTakenOnlyWhenNothingElseIsThere) {
  EXPECT_EQ(Find({"RANK=2", "WORLD_SIZE=4"}).rank, 2u);
  EXPECT_EQ(Find({"RANK=2", "PMI_RANK=7"}).rank, 7u);
}

TEST(RankIdentityTest, WhatTorchDistributedSaysIsRightWhereTheyDiffer) {
  // One task of srun a node, which spawns the ranks of the node.
  const auto found = Find({"SLURM_PROCID=1", "SLURM_STEP_ID=0", "SLURM_NTASKS=2", "SLURM_LOCALID=0",
                           "SLURM_JOB_ID=99"});
  const auto told = WithToldRank(found, ToldRank{.rank = 6, .world_size = 8});
  EXPECT_EQ(told.rank, 6u);
  EXPECT_EQ(told.world_size, 8u);
  EXPECT_FALSE(told.local_rank.has_value()) << "that of the task, not of the rank";
  EXPECT_EQ(told.job, "99");
  EXPECT_EQ(told.origin, "torch.distributed");
}

TEST(RankIdentityTest, WhatTorchDistributedSaysLeavesTheSameRankAndAnExplicitOneAlone) {
  const auto torchrun = Find({"RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8"});
  EXPECT_EQ(WithToldRank(torchrun, ToldRank{.rank = 5, .world_size = 8}), torchrun);
  EXPECT_EQ(WithToldRank(torchrun, std::nullopt), torchrun);
  const auto explicit_rank = Find({"RANK=5", "LOCAL_RANK=1"}, 0);
  EXPECT_EQ(WithToldRank(explicit_rank, ToldRank{.rank = 3, .world_size = 8}).rank, 0u);
}

TEST(RankIdentityTest, GarbageIsNoRank) {
  EXPECT_FALSE(Find({"RANK=banana", "LOCAL_RANK=0"}).rank.has_value());
  EXPECT_FALSE(Find({"RANK=", "LOCAL_RANK=0"}).rank.has_value());
  EXPECT_FALSE(Find({}).rank.has_value());
}

TEST(ProcessInfoTest, DescribesThisProcess) {
  const ProcessInfo info = ReadProcessInfo(/*redact=*/true);
  EXPECT_EQ(info.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(info.uid, getuid());
  ASSERT_FALSE(info.ns_pids.empty());
  EXPECT_EQ(info.ns_pids.back(), info.pid);
  EXPECT_GT(info.start_ticks, 0u);
  EXPECT_EQ(info.boot_id.size(), 36u);
  EXPECT_NE(info.executable.find("agent_test"), std::string::npos) << info.executable;
  ASSERT_FALSE(info.command_line.empty());
}

}  // namespace
}  // namespace ranktap::agent
