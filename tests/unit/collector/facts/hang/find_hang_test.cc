#include "collector/facts/hang/find_hang.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

namespace ranktap::collector {
namespace {

using Ranks = std::vector<uint32_t>;

// Ranks that enter calls, by group; what nobody plants here is not there.
class Job {
 public:
  explicit Job(uint32_t world) {
    job_.world = world;
    for (uint32_t rank = 0; rank < world; ++rank) job_.ranks[rank];
  }
  uint32_t Group(Ranks ranks) {
    job_.groups.push_back({.name = std::to_string(job_.groups.size()),
                           .description = {},
                           .backend = "nccl",
                           .ranks = std::move(ranks),
                           .has_all_ranks = true});
    return static_cast<uint32_t>(job_.groups.size() - 1);
  }
  void Enter(const Ranks& ranks, uint32_t group, uint64_t number, bool is_open = true,
             std::string_view function = "all_reduce", std::string_view sizes = "[[8]]") {
    for (const uint32_t rank : ranks) {
      job_.ranks[rank].push_back({.group = group,
                                  .number = number,
                                  .function = function,
                                  .in_sizes = sizes,
                                  .out_sizes = sizes,
                                  .in_types = "Float",
                                  .out_types = "Float",
                                  .stack = {},
                                  .peer = {},
                                  .is_open = is_open});
    }
  }
  void Message(uint32_t rank, uint32_t group, uint32_t peer, bool is_send) {
    Enter({rank}, group, 1, true, is_send ? "send" : "recv");
    JobCall& call = job_.ranks[rank].back();
    call.peer = peer;
    call.is_send = is_send;
    call.is_recv = !is_send;
  }
  void WithoutFile(uint32_t rank) { job_.ranks.erase(rank); }
  std::vector<HangFinding> Find() const { return FindHang(job_); }

 private:
  JobCalls job_;
};

Ranks AllBut(uint32_t world, uint32_t but) {
  Ranks ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0u);
  std::erase(ranks, but);
  return ranks;
}
Ranks All(uint32_t world) { return AllBut(world, world); }

TEST(FindHang, ARankThatDidNotEnterIsNamedWhereverItStands) {
  for (uint32_t guilty = 0; guilty < 4; ++guilty) {
    Job job(4);
    const uint32_t group = job.Group(All(4));
    job.Enter(All(4), group, 1, false);
    job.Enter(AllBut(4, guilty), group, 2);
    const std::vector<HangFinding> found = job.Find();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].cause, HangCause::kNotEntered);
    EXPECT_EQ(found[0].ranks, Ranks{guilty});
    EXPECT_EQ(found[0].waiting, AllBut(4, guilty));
    EXPECT_EQ(found[0].call.number, 2u);
    ASSERT_TRUE(found[0].last_call);
    EXPECT_EQ(found[0].last_call->number, 1u);
  }
}

TEST(FindHang, NothingIsFoundWhereEveryCallEnded) {
  Job job(4);
  const uint32_t group = job.Group(All(4));
  job.Enter(All(4), group, 1, false);
  job.Enter({0}, group, 2, false);  // a broadcast's root is ahead of the rest
  EXPECT_TRUE(job.Find().empty());
}

TEST(FindHang, TheMajorityDecidesWhoseCallDiffersEvenOfTheFirstRank) {
  for (uint32_t guilty = 0; guilty < 3; ++guilty) {
    Job job(3);
    const uint32_t group = job.Group(All(3));
    job.Enter(AllBut(3, guilty), group, 1, true, "all_reduce");
    job.Enter({guilty}, group, 1, true, "barrier");
    const std::vector<HangFinding> found = job.Find();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].cause, HangCause::kOtherCall);
    EXPECT_EQ(found[0].ranks, Ranks{guilty});
    EXPECT_TRUE(found[0].is_guilty);
    EXPECT_EQ(found[0].call.function, "all_reduce");
    EXPECT_EQ(found[0].other_call->function, "barrier");
  }
}

TEST(FindHang, OfTwoRanksBothAreNamedAndNeitherIsGuilty) {
  Job job(2);
  const uint32_t group = job.Group(All(2));
  job.Enter({0}, group, 1, true, "all_reduce", "[[8]]");
  job.Enter({1}, group, 1, true, "all_reduce", "[[9]]");
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kOtherSignature);
  EXPECT_EQ(found[0].ranks, (Ranks{0, 1}));
  EXPECT_FALSE(found[0].is_guilty);
}

TEST(FindHang, TheFirstCallThatDiffersCountsAndTheOneLeftOutIsSeen) {
  Job job(3);
  const uint32_t group = job.Group(All(3));
  const std::string_view functions[] = {"broadcast", "barrier", "all_gather", "all_reduce"};
  for (uint64_t number = 1; number <= 4; ++number) {
    job.Enter({0, 1}, group, number, number == 4, functions[number - 1]);
  }
  job.Enter({2}, group, 1, false, "broadcast");
  job.Enter({2}, group, 2, false, "all_gather");  // without the barrier
  job.Enter({2}, group, 3, false, "all_reduce");
  const std::vector<HangFinding> found = job.Find();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].cause, HangCause::kOtherCall);
  EXPECT_EQ(found[0].call.number, 2u);
  EXPECT_EQ(found[0].ranks, Ranks{2});
  EXPECT_TRUE(found[0].left_out);
}

TEST(FindHang, ARankWhoseCallHadNoElementsIsAheadAndStillGuilty) {
  Job job(3);
  const uint32_t group = job.Group(All(3));
  job.Enter({0, 1}, group, 1, true, "all_reduce", "[[8]]");
  job.Enter({2}, group, 1, false, "all_reduce", "[[0]]");
  job.Enter({2}, group, 2, true, "all_reduce", "[[8]]");
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);  // the ranks that stay behind are not named
  EXPECT_EQ(found[0].cause, HangCause::kOtherSignature);
  EXPECT_EQ(found[0].ranks, Ranks{2});
}

TEST(FindHang, AChainOfWaitsIsFollowedToItsEnd) {
  Job job(4);
  const uint32_t all = job.Group(All(4)), pair = job.Group({1, 2}), last = job.Group({2, 3});
  job.Enter({0}, all, 1);
  job.Enter({1}, pair, 1);
  job.Enter({2}, last, 1);
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ranks, Ranks{3});
  EXPECT_EQ(found[0].cause, HangCause::kNotEntered);
  std::set<uint32_t> waiting(found[0].waiting.begin(), found[0].waiting.end());
  for (const WaitingRanks& here : found[0].in_turn)
    waiting.insert(here.ranks.begin(), here.ranks.end());
  EXPECT_EQ(waiting, (std::set<uint32_t>{0, 1, 2}));
}

TEST(FindHang, TwoGroupsInTwoOrdersNameTheFew) {
  Job job(4);
  const uint32_t a = job.Group(All(4)), b = job.Group(All(4));
  job.Enter({0, 1, 2}, a, 1);
  job.Enter({3}, b, 1);
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kOtherOrder);
  EXPECT_EQ(found[0].ranks, Ranks{3});
  EXPECT_TRUE(found[0].is_guilty);
  EXPECT_EQ(found[0].waiting, (Ranks{0, 1, 2}));
}

TEST(FindHang, ACircleOverThreeGroupsNamesAllOfItAndNobodyAsGuilty) {
  Job job(3);
  const uint32_t a = job.Group({0, 1}), b = job.Group({1, 2}), c = job.Group({0, 2});
  job.Enter({0}, a, 1);
  job.Enter({1}, b, 1);
  job.Enter({2}, c, 1);
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kOtherOrder);
  EXPECT_EQ(found[0].ranks, (Ranks{0, 1, 2}));
  EXPECT_FALSE(found[0].is_guilty);
}

TEST(FindHang, ASendWhosePeerStandsInACollectiveNamesTheSenderFirst) {
  Job job(3);
  const uint32_t group = job.Group(All(3));
  job.Message(1, group, 2, true);
  job.Enter({0, 2}, group, 1);
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kPeerElsewhere);
  EXPECT_EQ(found[0].ranks[0], 1u);
  EXPECT_EQ(found[0].ranks[1], 2u);
}

TEST(FindHang, ASendThatMeetsItsRecvWaitsForNobody) {
  Job job(3);
  const uint32_t group = job.Group(All(3));
  job.Message(0, group, 1, true);
  job.Message(1, group, 0, false);
  job.Message(1, group, 2, false);  // this one is not sent
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kNotEntered);
  EXPECT_EQ(found[0].ranks, Ranks{2});
}

TEST(FindHang, ARankWithoutAFileIsUndecidedUnlessAnotherOneIsTheCause) {
  Job job(4);
  const uint32_t group = job.Group(All(4));
  job.Enter({0, 1, 2}, group, 1);
  job.WithoutFile(3);
  std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kNoFile);
  EXPECT_EQ(found[0].ranks, Ranks{3});
  EXPECT_FALSE(found[0].is_guilty);

  Job both(4);
  const uint32_t of_both = both.Group(All(4));
  both.Enter({0, 1}, of_both, 1);
  both.WithoutFile(3);
  found = both.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kNotEntered);
  EXPECT_EQ(found[0].ranks, Ranks{2});
}

TEST(FindHang, ACallThatAllEnteredAlikeBlamesNoRank) {
  Job job(2);
  const uint32_t group = job.Group(All(2));
  job.Enter(All(2), group, 1);
  const std::vector<HangFinding> found = job.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, HangCause::kAllEntered);
  EXPECT_FALSE(found[0].is_guilty);
}

TEST(FindHang, AllToAllsAndTheRootsSideOfAGatherDifferByDesign) {
  Job job(3);
  const uint32_t group = job.Group(All(3));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const std::string_view sizes[] = {"[[1]]", "[[2]]", "[[3]]"};
    job.Enter({rank}, group, 1, false, "all_to_all", sizes[rank]);
  }
  EXPECT_TRUE(job.Find().empty());
}

}  // namespace
}  // namespace ranktap::collector
