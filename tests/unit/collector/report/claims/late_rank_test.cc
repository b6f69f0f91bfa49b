// Each check of who is late, shown on a made run whose truth is known, beside one that differs in
// nothing else and of which the claim is made.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "collector/facts/causes/late_module.h"
#include "collector/facts/causes/stragglers.h"
#include "collector/facts/collectives.h"
#include "collector/report/claims/claim.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

// What the check of this name says, whatever the others do.
std::string SaysOf(const Run& run, std::string_view against) {
  for (const CrossCheck& check : AllCrossChecks()) {
    if (check.claim == Claim::kLateRank && check.against == against) return check.disagreement(run);
  }
  ADD_FAILURE() << "no check " << against;
  return "";
}

// One call of two ranks: when each begins it, and when both end.
struct Call {
  int64_t first = 0, second = 0, end = 0;  // by rank 0 and 1
  int64_t end_of_first = 0;                // 0: as the second's
};

InsightProgram RanksOfOneHost(uint32_t ranks) {
  InsightProgram program(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) program.rank(rank).trace().info.host = "a";
  return program;
}

void AddCollective(InsightRank* rank, uint64_t sequence, int64_t start, int64_t end) {
  rank->AddKernel(
      {.name = kAllReduce, .launched = start, .start = start, .end = end, .stream = 13});
  rank->DescribeCollective(sequence, 4 << 20, 2);
}

// Ten steps of 10 ms on two ranks of one host: they compute, then communicate as `call` says.
InsightProgram TwoRanks(const Call& call) {
  InsightProgram program = RanksOfOneHost(2);
  for (uint64_t step = 0; step < 10; ++step) {
    const int64_t at = static_cast<int64_t>(step) * 10 * kMs;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      const int64_t begin = at + (rank == 0 ? call.first : call.second);
      const bool is_early = rank == 0 && call.end_of_first != 0;
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = begin});
      AddCollective(&program.rank(rank), step, begin,
                    at + (is_early ? call.end_of_first : call.end));
    }
  }
  return program;
}

TEST(LateRankClaim, TheRankThatComesLastIsNamedAlike) {
  InsightProgram program = TwoRanks({.first = 2 * kMs, .second = 8 * kMs, .end = 9 * kMs});
  EXPECT_FALSE(RulingOn(program.run(), Claim::kLateRank).is_undecided())
      << RulingOn(program.run(), Claim::kLateRank).why;
  EXPECT_NE(Judge(program.run()).sentence.find("the other ranks wait for rank 1"),
            std::string::npos);
  EXPECT_EQ(TheFinding(program.run(), "straggler").trace, 1u);
}

// Rank 0 leaves after 1 ms, as a root that has sent; rank 1 comes 6 ms later. Lengths blame rank 0.
// One per cent of it rounds to nothing, and so does a wait that nobody caused.
TEST(LateRankClaim, OneRankWhoseStepsLastSomeNanosecondsBlamesNobody) {
  InsightProgram program = RanksOfOneHost(1);
  for (int64_t step = 0; step < 10; ++step) program.rank(0).AddStep(step * 100, step * 100 + 40);
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_EQ(sentence.find("wait"), std::string::npos) << sentence;
}

TEST(LateRankClaim, ARootThatLeavesAtOnceIsNotLate) {
  InsightProgram program =
      TwoRanks({.first = 2 * kMs, .second = 7 * kMs, .end = 9 * kMs, .end_of_first = 3 * kMs});
  EXPECT_EQ(SaysOf(program.run(), "arrivals"),
            "rank 0 is shortest in its collectives, but by the clocks rank 1 comes last to them");
  const Verdict verdict = Judge(program.run());
  EXPECT_EQ(verdict.sentence.find("wait for rank"), std::string::npos) << verdict.sentence;
  for (const Loss& loss : verdict.losses) {
    EXPECT_FALSE(loss.blames) << loss.finding;
    EXPECT_TRUE(loss.cause != Cause::kWait ||
                loss.finding.find("undecided: rank 0 is shortest") != std::string::npos)
        << loss.finding;
  }
  EXPECT_TRUE(IsUnchecked(program.run(), "straggler"));
  EXPECT_EQ(TabulateStragglers(program.run(), {}).notes.back(),
            "who is late is undecided: rank 0 is shortest in its collectives, but by the clocks "
            "rank 1 comes last to them");
}

// Four ranks whose calls name one group of two, and no members.
TEST(LateRankClaim, MoreRanksThanAGroupHasAreNotOneGroup) {
  const auto program_of = [](uint32_t ranks) {
    InsightProgram program = RanksOfOneHost(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Trace& trace = program.rank(rank).trace();
      trace.info.world_size.reset();
      program.rank(rank).AddStep(0, 10 * kMs);
      AddCollective(&program.rank(rank), 1, (1 + rank) * kMs, 9 * kMs);
      trace.collectives.back().group_ranks.clear();
    }
    return program;
  };
  InsightProgram four = program_of(4), two = program_of(2);
  EXPECT_EQ(SaysOf(four.run(), "group"), "4 ranks are taken for one group of 2");
  EXPECT_EQ(SaysOf(two.run(), "group"), "");
}

// Steps of 1 ms; between them an evaluation, in which one rank comes 8 ms late.
TEST(LateRankClaim, AWaitIsNoLongerThanTheStepsOfThoseThatWait) {
  const auto program_of = [](int64_t step_ns) {
    InsightProgram program = RanksOfOneHost(2);
    for (uint64_t step = 0; step < 10; ++step) {
      const int64_t at = static_cast<int64_t>(step) * 20 * kMs;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        program.rank(rank).AddStep(at, at + step_ns);
        program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + kMs});
        AddCollective(&program.rank(rank), step, at + (rank == 0 ? 2 : 10) * kMs, at + 11 * kMs);
      }
    }
    return program;
  };
  InsightProgram beside = program_of(kMs), inside = program_of(20 * kMs);
  EXPECT_EQ(SaysOf(beside.run(), "bound"), "they would wait 8.000 ms of each 1.000 ms step");
  EXPECT_EQ(SaysOf(inside.run(), "bound"), "");
  const auto share = [](const auto& run) {
    const Table table = TabulateStragglers(run, {});
    return table.rows.at(0)[ColumnNamed(table, "step_percent")];
  };
  EXPECT_TRUE(std::holds_alternative<std::monostate>(share(beside.run()))) << "not 800 %";
  EXPECT_DOUBLE_EQ(std::get<double>(share(inside.run())), 40);
}

TEST(LateRankClaim, ARankWithoutBatchesWaitsForNobodysLateness) {
  const auto program_of = [](uint64_t steps_of_first) {
    InsightProgram program = RanksOfOneHost(2);
    for (uint64_t step = 0; step < 30; ++step) {
      const int64_t at = static_cast<int64_t>(step) * 10 * kMs;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        if (rank == 1 || step < steps_of_first) program.rank(rank).AddStep(at, at + 10 * kMs);
        AddCollective(&program.rank(rank), step, at + (rank == 0 ? 1 : 8) * kMs, at + 9 * kMs);
      }
    }
    return program;
  };
  InsightProgram uneven = program_of(10), even = program_of(30);
  EXPECT_EQ(SaysOf(uneven.run(), "steps"), "rank 0 made 10 steps and rank 1 made 30");
  EXPECT_EQ(SaysOf(even.run(), "steps"), "");
  InsightProgram unmarked = program_of(0);  // its steps are not known, and so not 1
  EXPECT_EQ(SaysOf(unmarked.run(), "steps"), "");
}

// Rank 1's steps take 11 ms and rank 0's 10: they go apart, and so wait for each other in none,
// though rank 0 is the shortest in what was matched.
TEST(LateRankClaim, RanksThatGoApartDoNotWaitForEachOther) {
  const auto program_of = [](int64_t step_of_second) {
    InsightProgram program = RanksOfOneHost(2);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (uint64_t step = 0; step < 10; ++step) {
        const int64_t length = rank == 0 ? 10 * kMs : step_of_second;
        const int64_t at = static_cast<int64_t>(step) * length;
        program.rank(rank).AddRange("", fmt::format("train_step {}", step), at, at + length);
        AddCollective(&program.rank(rank), step, at + (rank == 0 ? 5 : 4) * kMs, at + 6 * kMs);
      }
    }
    return program;
  };
  InsightProgram apart = program_of(11 * kMs), together = program_of(10 * kMs);
  EXPECT_EQ(SaysOf(apart.run(), "pace"),
            "rank 0 is last to its collectives, but rank 1 falls behind by 1.000 ms more with each "
            "step, so that they do not wait for each other");
  EXPECT_EQ(SaysOf(together.run(), "pace"), "");
}

// Gloo's groups {0, 1} and {2, 3}, in which rank 3 comes 8 ms late. All four have a group of two.
TEST(LateRankClaim, GroupsOfTheHostAreToldApartByTheirMembers) {
  const auto program_of = [](bool members_known) {
    InsightProgram program = RanksOfOneHost(4);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      Trace& trace = program.rank(rank).trace();
      const uint32_t first = rank / 2 * 2;
      trace.process_groups.push_back({.name = "1",
                                      .description = {},
                                      .backend = "gloo",
                                      .size = 2,
                                      .ranks = {first, first + 1}});
      if (!members_known) trace.process_groups[0].ranks.clear();
      for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
        program.rank(rank).AddStep(at, at + 10 * kMs);
        program.rank(rank).AddRange(proto::kCommDomain, "all_reduce",
                                    at + (rank == 3 ? 9 : 1) * kMs, at + (rank < 2 ? 2 : 10) * kMs);
        trace.ranges.category.PadTo(trace.ranges.size());
        trace.ranges.category[trace.ranges.size() - 1] = 2;
      }
    }
    return program;
  };
  InsightProgram known = program_of(true), unknown = program_of(false);
  const std::vector<Straggler>& late = StragglersOf(known.run());
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].trace, 3u);
  EXPECT_EQ(late[0].caused_wait_ns, 8 * kMs);
  EXPECT_TRUE(StragglersOf(unknown.run()).empty()) << "nobody is blamed";
}

// Three ranks without a device, 20 ms a step. Rank 1 spends 8 ms more in Net.experts, or in as many
// modules as `parts` says.
InsightProgram ProgramWithALateModule(int64_t parts) {
  InsightProgram program = RanksOfOneHost(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    InsightRank& of = program.rank(rank);
    const auto add_module = [&of](const std::string& name, uint16_t depth, int64_t from,
                                  int64_t to) {
      of.AddRange(proto::kModuleDomain, name, from, to);
      of.trace().ranges.depth.back() = depth;
    };
    of.trace().process_groups.push_back(
        {.name = "0", .description = {}, .backend = "gloo", .size = 3, .ranks = {0, 1, 2}});
    for (int64_t at = 0; at < 10 * 20 * kMs; at += 20 * kMs) {
      const int64_t forward = rank == 1 ? 14 * kMs : 6 * kMs;
      of.AddStep(at, at + 20 * kMs);
      add_module("Net", 0, at, at + forward);
      add_module("Net.embed", 1, at, at + 2 * kMs);
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t length = (forward - 2 * kMs) / parts;
        const int64_t from = at + 2 * kMs + part * length;
        add_module(fmt::format("Net.experts{}", part == 0 ? "" : std::to_string(part)), 1, from,
                   from + length);
      }
      of.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + forward, at + forward + kMs);
      of.AddRange(proto::kCommDomain, "all_reduce", at + forward + kMs, at + 16 * kMs);
      of.trace().ranges.category.PadTo(of.trace().ranges.size());
      of.trace().ranges.category[of.trace().ranges.size() - 1] = 3;
    }
  }
  return program;
}

TEST(LateRankClaim, TheModuleWithMostOfTheExcessIsNamed) {
  InsightProgram in_one = ProgramWithALateModule(1), in_four = ProgramWithALateModule(4);
  const std::string one = Judge(in_one.run()).sentence, four = Judge(in_four.run()).sentence;
  EXPECT_NE(one.find("wait for rank 1, which spends 8.000 ms a step more than they do in the "
                     "forward pass (most in Net.experts)"),
            std::string::npos)
      << one;
  EXPECT_NE(four.find("than they do in the forward pass"), std::string::npos) << four;
  EXPECT_EQ(four.find("(most in Net.experts"), std::string::npos) << four;
  const Table late = TabulateStragglers(in_one.run(), {});
  EXPECT_EQ(CellAt<std::string>(late, 0, "most_in"), "Net.experts");
  const Table late_in_four = TabulateStragglers(in_four.run(), {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      late_in_four.rows[0][ColumnNamed(late_in_four, "most_in")]));
}

TEST(LateRankClaim, ModulesHaveTheExcessOfTheLateRankOverTheOthers) {
  InsightProgram program = ProgramWithALateModule(2);
  const Table modules = TabulateModules(program.run(), {});
  EXPECT_EQ(modules.notes.at(0),
            "excess is what rank 1 spends more in the module itself, a step, than the median of "
            "the other ranks");
  const auto excess_of = [&modules](const std::string& name) {
    return modules.rows.at(RowWith(modules, "module", name)).at(ColumnNamed(modules, "excess_ns"));
  };
  EXPECT_EQ(excess_of("Net.experts"), Cell(4 * kMs));
  EXPECT_EQ(excess_of("Net.experts1"), Cell(4 * kMs));
  EXPECT_EQ(excess_of("Net.embed"), Cell()) << "it takes as long on all ranks";
}

// Both ranks compute 2 ms of gemm; rank 1 then looks up for 6 ms, or for 3 in each of two kernels.
TEST(LateRankClaim, TheKernelWithMostOfTheExcessIsNamed) {
  const auto program_of = [](bool is_split) {
    InsightProgram program = RanksOfOneHost(2);
    for (uint64_t step = 0; step < 10; ++step) {
      const int64_t at = static_cast<int64_t>(step) * 10 * kMs;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        InsightRank& of = program.rank(rank);
        of.AddStep(at, at + 10 * kMs);
        of.AddKernel({.launched = at, .start = at, .end = at + 2 * kMs});
        if (rank == 1) {
          of.AddKernel(
              {.name = "lookup", .launched = at, .start = at + 2 * kMs, .end = at + 5 * kMs});
          of.AddKernel({.name = is_split ? "gather" : "lookup",
                        .launched = at,
                        .start = at + 5 * kMs,
                        .end = at + 8 * kMs});
        }
        AddCollective(&of, step, at + (rank == 0 ? 2 : 8) * kMs, at + 9 * kMs);
      }
    }
    return program;
  };
  InsightProgram whole = program_of(false), split = program_of(true);
  const std::vector<ModuleExcess> of = ExcessOfKernels(whole.run(), 1);
  ASSERT_FALSE(of.empty());
  EXPECT_EQ(of[0].name, "lookup");
  EXPECT_EQ(of[0].ns, 6 * kMs);
  const Table late = TabulateStragglers(whole.run(), {});
  EXPECT_EQ(CellAt<std::string>(late, 0, "most_in"), "lookup");
  EXPECT_NE(TheFinding(whole.run(), "straggler").finding.find("on compute (most in lookup)"),
            std::string::npos)
      << TheFinding(whole.run(), "straggler").finding;
  const Table late_in_two = TabulateStragglers(split.run(), {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      late_in_two.rows[0][ColumnNamed(late_in_two, "most_in")]))
      << "neither has more than half";
}

// Group {0, 1} makes its ten steps in 1 ms each, {2, 3} in 10 ms, as rank 3 comes 8 ms late.
TEST(LateRankClaim, AGroupThatIsFasterSaysNothingOfWhoIsLateInAnother) {
  InsightProgram program = RanksOfOneHost(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Trace& trace = program.rank(rank).trace();
    const uint32_t first = rank / 2 * 2;
    trace.process_groups.push_back({.name = "1",
                                    .description = {},
                                    .backend = "gloo",
                                    .size = 2,
                                    .ranks = {first, first + 1}});
    const int64_t unit = rank < 2 ? kMs / 10 : kMs;
    for (int64_t at = 0; at < 100 * unit; at += 10 * unit) {
      program.rank(rank).AddStep(at, at + 10 * unit);
      program.rank(rank).AddRange(proto::kCommDomain, "all_reduce", at + (rank == 3 ? 9 : 1) * unit,
                                  at + (rank < 2 ? 2 : 10) * unit);
      trace.ranges.category.PadTo(trace.ranges.size());
      trace.ranges.category[trace.ranges.size() - 1] = 2;
    }
  }
  EXPECT_EQ(SaysOf(program.run(), "pace"), "");
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_NE(sentence.find(" In 8.000 ms of a step of theirs rank 2 waits for rank 3"),
            std::string::npos)
      << sentence;
}

}  // namespace
}  // namespace ranktap::collector
