#include "collector/facts/framework/parallel_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collector/facts/roofline/device_peaks.h"

namespace ranktap::collector {
namespace {

using Groups = std::vector<std::pair<std::string, std::vector<uint32_t>>>;  // description, ranks

// Each rank is told of the groups that it is in, and of the world.
Run MakeRun(uint32_t ranks, const Groups& groups) {
  Run run;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Trace& trace = run.traces.emplace_back();
    trace.info.rank = rank;
    ProcessGroup world{.description = "default_pg", .size = ranks};
    for (uint32_t other = 0; other < ranks; ++other) world.ranks.push_back(other);
    trace.process_groups.push_back(world);
    for (const auto& [description, members] : groups) {
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      trace.process_groups.push_back({.description = description,
                                      .size = static_cast<uint32_t>(members.size()),
                                      .ranks = members});
    }
  }
  return run;
}

int64_t DataSize(const Run& run) { return SizeParallelism(run, run.traces[0], 0).data; }

TEST(ParallelSizesTest, WithoutSmallerGroupsEveryRankHasDataOfItsOwn) {
  EXPECT_EQ(DataSize(MakeRun(4, {})), 4);
  EXPECT_EQ(DataSize(MakeRun(1, {})), 1);
}

TEST(ParallelSizesTest, MegatronsGroupsSayWhatTheyAreFor) {
  const collector::Run run = MakeRun(8, {{"TENSOR_MODEL_PARALLEL_GROUP", {0, 1}},
                                         {"PIPELINE_MODEL_PARALLEL_GROUP", {0, 4}},
                                         {"TENSOR_AND_DATA_PARALLEL_GROUP", {0, 1, 2, 3}},
                                         {"EXPERT_DATA_PARALLEL_GROUP", {0, 2, 4, 6}},
                                         {"DATA_PARALLEL_GROUP", {0, 2}}});
  EXPECT_EQ(DataSize(run), 2);
  EXPECT_EQ(SizeParallelism(run, run.traces[0], 0).model(), 4);
}

TEST(ParallelSizesTest, DataParallelDimensionsOfAMeshMultiply) {
  EXPECT_EQ(DataSize(MakeRun(8, {{"mesh_dp_replicate", {0, 4}},
                                 {"mesh_dp_replicate", {2, 6}},
                                 {"mesh_dp_shard", {0, 2}},
                                 {"mesh_dp_shard", {4, 6}},
                                 {"mesh_tp", {0, 1}}})),
            4);
}

TEST(ParallelSizesTest, WhereOnlyModelParallelGroupsSayWhatTheyAreTheRestIsData) {
  EXPECT_EQ(DataSize(MakeRun(8, {{"mesh_pp", {0, 4}}, {"mesh_tp", {0, 1}}, {"mesh_tp", {4, 5}}})),
            2);
}

TEST(ParallelSizesTest, NamelessGroupsAreUnderstoodWhereBothSidesOfTheGridAreEqual) {
  const Groups grid = {
      {"undefined", {0, 1}}, {"undefined", {2, 3}}, {"undefined", {0, 2}}, {"undefined", {1, 3}}};
  EXPECT_EQ(DataSize(MakeRun(4, grid)), 2);
  const collector::Run pair = MakeRun(4, {{"undefined", {0, 1}}});
  EXPECT_EQ(DataSize(pair), 0);
  EXPECT_EQ(SizeParallelism(pair, pair.traces[0], 4).data, 4);
}

TEST(PeakFlopsTest, IsTheDataSheetsDensePeakOfTheType) {
  EXPECT_EQ(PeakFlops("NVIDIA H100 80GB HBM3", "c10::BFloat16"), 989.4e12);
  EXPECT_EQ(PeakFlops("NVIDIA H100 PCIe", "c10::Half"), 756e12);
  EXPECT_EQ(PeakFlops("Tesla V100-SXM2-32GB", "c10::Half"), 125e12);
  EXPECT_EQ(PeakFlops("Tesla V100-PCIE-16GB", "c10::Half"), 112e12);
  EXPECT_EQ(PeakFlops("NVIDIA A100-SXM4-80GB", "float"), 19.5e12);
  EXPECT_EQ(PeakFlops("NVIDIA A100-SXM4-80GB", "c10::Float8_e4m3fn"), 0);
  EXPECT_EQ(PeakFlops("NVIDIA A10G", "float"), 0);  // another device than the A10
  EXPECT_EQ(PeakFlops("NVIDIA H200", "Scalar"), 0);
  EXPECT_EQ(PeakFlops("", "float"), 0);
}

}  // namespace
}  // namespace ranktap::collector
