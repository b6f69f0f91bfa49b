// Rules about communication and about ranks. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

struct Communication {
  uint32_t stream = 7;
  int64_t count = 1;  // in each step
  uint64_t bytes = 4 << 20;
  int64_t exposed_ns = 2 * kMs;  // of each step, all of them
  int64_t hidden_ns = 0;
};

// Two ranks that do the same at the same time: in each step of 10 ms they compute for 8 ms on
// stream 7, and then communicate while nothing computes.
InsightProgram TwoRanksThat(const Communication& does) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    uint64_t sequence = 0;
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 8 * kMs});
      const int64_t each = does.exposed_ns / does.count;
      for (int64_t i = 0; i < does.count; ++i) {
        const int64_t start = at + 8 * kMs - does.hidden_ns + i * each;
        program.rank(rank).AddKernel({.name = kAllReduce,
                                      .launched = at + 10 * kUs + i,
                                      .start = start,
                                      .end = start + each,
                                      .stream = does.stream,
                                      .launch_ns = 1});
        program.rank(rank).DescribeCollective(++sequence, does.bytes, 2);
      }
    }
  }
  return program;
}

TEST(CommOnComputeStreamRule, FiresWhereOneStreamDoesBoth) {
  InsightProgram program = TwoRanksThat({.stream = 7});
  const Insight found = TheFinding(program.run(), "comm-on-compute-stream");
  EXPECT_EQ(found.finding,
            "Stream 7 communicates once a step and also runs 100.0 % of the compute time, so that "
            "neither hides the other: for 2.000 ms of each 10.00 ms step (20.0 %) nothing computes "
            "meanwhile.");
  EXPECT_EQ(found.ranks, 2);
  EXPECT_LE(found.saving_ns.value(), 2 * kMs);
  EXPECT_GT(found.saving_ns.value(), 1'900'000);
}

TEST(CommOnComputeStreamRule, IsSilentWhereCommunicationHasAStreamOfItsOwn) {
  InsightProgram program = TwoRanksThat({.stream = 13});
  EXPECT_TRUE(IsSilent(program.run(), "comm-on-compute-stream"));
}

TEST(ExposedCommRule, FiresWhereNothingComputesBehindAStreamOfItsOwn) {
  InsightProgram program = TwoRanksThat({.stream = 13});
  const Insight found = TheFinding(program.run(), "exposed-comm");
  EXPECT_EQ(found.lost_ns, 2 * kMs);
  EXPECT_NE(found.finding.find(kAllReduce), std::string::npos) << found.finding;
}

TEST(ExposedCommRule, IsSilentWhereTheSameCommunicationIsHidden) {
  InsightProgram program = TwoRanksThat({.stream = 13, .hidden_ns = 2 * kMs});
  EXPECT_TRUE(IsSilent(program.run(), "exposed-comm"));
}

// Nothing can hide more than there is to hide behind.
TEST(ExposedCommRule, SavesNoMoreThanThereIsToCompute) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    uint64_t sequence = 0;
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 1 * kMs});
      program.rank(rank).AddKernel({.name = kAllReduce,
                                    .launched = at + 10 * kUs,
                                    .start = at + 1 * kMs,
                                    .end = at + 10 * kMs,
                                    .stream = 13});
      program.rank(rank).DescribeCollective(++sequence, 4 << 20, 2);
    }
  }
  const Insight found = TheFinding(program.run(), "exposed-comm");
  EXPECT_EQ(found.lost_ns, 9 * kMs);
  EXPECT_LE(found.saving_ns.value(), 1 * kMs);
}

TEST(SmallCollectivesRule, FiresOnManySmallOnes) {
  InsightProgram program = TwoRanksThat({.stream = 13, .count = 40, .bytes = 4096});
  const Insight found = TheFinding(program.run(), "small-collectives");
  EXPECT_EQ(
      found.finding,
      "A collective of less than 256.0 KiB runs 40 times a step, 4.0 KiB each in the mean: for "
      "2.000 ms of each 10.00 ms step (20.0 %) one of them runs while nothing computes.");
  // One bucket a step would be left.
  EXPECT_LE(found.saving_ns.value(), 2 * kMs * 39 / 40);
}

TEST(SmallCollectivesRule, IsSilentWhereTheyAreLarge) {
  InsightProgram program = TwoRanksThat({.stream = 13, .count = 40, .bytes = 1 << 20});
  EXPECT_TRUE(IsSilent(program.run(), "small-collectives"));
}

SyntheticJob AJob(int64_t late_ns) {
  return SyntheticJob(
      {.ranks = 4, .layers = 1, .late = {{.rank = 2, .cause = Cause::kHost, .ns = late_ns}}});
}

TEST(StragglerRule, NamesTheRankAndWhatItDoesLonger) {
  SyntheticJob job = AJob(400'000);
  const Insight found = TheFinding(job.run(), "straggler");
  EXPECT_EQ(found.trace, 2u);
  EXPECT_NE(found.finding.find("rank 2"), std::string::npos) << found.finding;
  EXPECT_NE(found.finding.find(
                "comes last to 8 of 8 collectives and spends 400.0 us a step more than they do"),
            std::string::npos)
      << found.finding;
  EXPECT_LE(found.saving_ns.value(), 400'000);
  EXPECT_GT(found.saving_ns.value(), 250'000);
}

TEST(StragglerRule, IsSilentWhereNoRankIsLate) {
  SyntheticJob job = AJob(0);
  EXPECT_TRUE(IsSilent(job.run(), "straggler"));
}

// Four devices under load, of which the third runs at `mhz`.
InsightProgram FourClocks(double mhz) {
  InsightProgram program(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Trace& trace = program.rank(rank).trace();
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 10 * kMs});
    }
    const uint32_t name = trace.dictionary.AppendString("SM clock (MHz)");
    for (int64_t at = 0; at < 5; ++at) {
      trace.counters.start.push_back(at * kMs);
      trace.counters.end.push_back(at * kMs);
      trace.counters.name.push_back(name);
      trace.counters.device.push_back(0);
      trace.counters.value.push_back(rank == 2 ? mhz : 1980);
    }
  }
  return program;
}

TEST(SlowClockRule, NamesTheDeviceThatRunsMoreSlowly) {
  InsightProgram program = FourClocks(1485);
  const Insight found = TheFinding(program.run(), "slow-clock");
  EXPECT_EQ(found.trace, 2u);
  EXPECT_EQ(found.finding,
            "Device 0 of rank 2 runs at 1485 MHz in the mean, 25.0 % below the median of 4 devices "
            "(1980 MHz).");
  EXPECT_EQ(found.lost_ns, 2'500'000);
  EXPECT_LE(found.saving_ns.value(), found.lost_ns);
}

TEST(SlowClockRule, IsSilentWhereAllRunAlike) {
  InsightProgram program = FourClocks(1965);
  EXPECT_TRUE(IsSilent(program.run(), "slow-clock"));
}

}  // namespace
}  // namespace ranktap::collector
