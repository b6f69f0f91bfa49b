#include "collector/stacks/stack_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/stacks/wait_reason.h"

namespace ranktap::collector {
namespace {

RankStacks RankAt(uint32_t rank, uint32_t line, std::string does) {
  const pid_t process = static_cast<pid_t>(100 + rank);
  return {.rank = rank,
          .stacks = {
              .process = process,
              .threads = {{.thread = process,
                           .does = std::move(does),
                           .frames = {{.file = "train.py", .function = "main", .line = line}}}}}};
}

TEST(StackGroups, EqualStacksOfRanksAreToldOnceTheLargestGroupFirst) {
  std::vector<RankStacks> ranks;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    ranks.push_back(RankAt(rank, rank == 13 ? 97 : 12,
                           "reads /data (descriptor " + std::to_string(rank) + ")"));
  }
  EXPECT_EQ(FormatStacks(ranks),
            "15 ranks (0-12, 14, 15), main thread: reads /data (descriptor 0)\n"
            "    train.py:12 main\n\n"
            "rank 13, main thread: reads /data (descriptor 13)\n"
            "    train.py:97 main\n\n");
}

TEST(StackGroups, RecursionIsToldOnceAndAProcessThatCannotBeReadWithItsReason) {
  std::vector<RankStacks> ranks = {RankAt(0, 5, "runs"), {}};
  ranks[0].stacks.threads[0].frames.resize(4, {"a.py", "f", 7});
  ranks[1].stacks = {.process = 9, .problem = "it does not run Python"};
  EXPECT_EQ(FormatStacks(ranks),
            "rank 0, main thread: runs\n"
            "    train.py:5 main\n"
            "    a.py:7 f (3 times)\n\n"
            "process 9: it does not run Python\n");
}

TEST(StackGroups, RanksInOneCudaCallAreTogetherHoweverLongTheyAreInIt) {
  std::vector<RankStacks> ranks = {RankAt(0, 5, "runs"), RankAt(1, 5, "runs"),
                                   RankAt(2, 5, "runs")};
  for (size_t i = 0; i < 2; ++i) {
    ranks[i].stacks.threads[0].cuda_call = "cudaStreamSynchronize";
    ranks[i].stacks.threads[0].cuda_call_ns = 1'500'000'000 * static_cast<int64_t>(i + 1);
  }
  EXPECT_EQ(FormatStacks(ranks),
            "2 ranks (0, 1), main thread: runs, in cudaStreamSynchronize for up to 3.0 s\n"
            "    train.py:5 main\n\n"
            "rank 2, main thread: runs\n"
            "    train.py:5 main\n\n");
}

TEST(WaitReason, IsWhatTheSystemCallIsAbout) {
  const auto describe = [](std::string_view line, const std::string& path) {
    const auto call = ParseSystemCall(line);
    return call ? DescribeSystemCall(*call, path) : std::string("none");
  };
  EXPECT_EQ(describe("0 0x5 0x7f00 0x10 0x0 0x0 0x0 0x7ffd 0x7f12", "/data/a b"),
            "reads /data/a b (descriptor 5)");
  EXPECT_EQ(describe("44 0xb 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f12", ""), "sends to descriptor 11");
  EXPECT_EQ(describe("202 0x7f0012345678 0x189 0x0 0x0 0x0 0x0 0x7ffd 0x7f12", ""),
            "waits for a lock");
  EXPECT_EQ(describe("running", ""), "none");
  EXPECT_EQ(describe("-1 0x7ffd 0x7f12", ""), "none");
  EXPECT_EQ(describe("", ""), "none");
  EXPECT_EQ(ParseSystemCall("202 0xabc 0x189")->arguments[0], 0xabcu);
}

}  // namespace
}  // namespace ranktap::collector
