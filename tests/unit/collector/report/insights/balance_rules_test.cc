// Rules about how work and memory are shared out, and about boards. Pairs differ in one number.
#include <gtest/gtest.h>

#include "collector/trace/device_counters.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// Steps of 10 ms: each rank looks up embeddings, multiplies for 4 ms, and reduces to the end.
InsightProgram AShardedProgram(int64_t lookup_0, int64_t lookup_1, int64_t multiply_1 = 4 * kMs) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    InsightRank& of = program.rank(rank);
    const int64_t lookup = rank == 0 ? lookup_0 : lookup_1;
    const int64_t multiply = rank == 0 ? 4 * kMs : multiply_1;
    for (int64_t at = 0, k = 0; k < 10; at += 10 * kMs, ++k) {
      of.AddStep(at, at + 10 * kMs);
      of.AddKernel({.name = "lookup", .launched = at, .start = at, .end = at + lookup});
      of.AddKernel({.name = "multiply",
                    .launched = at + 2 * kUs,
                    .start = at + lookup,
                    .end = at + lookup + multiply});
      of.AddKernel({.name = "add",
                    .launched = at + 4 * kUs,
                    .start = at + lookup + multiply,
                    .end = at + lookup + multiply + 100 * kUs * multiply / (4 * kMs)});
      of.AddKernel({.name = "ncclKernel_AllReduce_RING_LL_Sum_float",
                    .launched = at + 6 * kUs,
                    .start = at + lookup + multiply + 200 * kUs,
                    .end = at + 10 * kMs});
      of.DescribeCollective(static_cast<uint64_t>(k), 1 << 20, 2);
    }
  }
  return program;
}

TEST(UnbalancedShardsRule, FiresWhereOneRankHasMoreOfOneKernel) {
  InsightProgram program = AShardedProgram(1 * kMs, 3 * kMs);
  const Insight found = TheFinding(program.run(), "unbalanced-shards");
  EXPECT_EQ(found.trace, 1u);
  EXPECT_EQ(found.lost_ns, 1 * kMs);
  EXPECT_EQ(found.finding,
            "rank 1 computes 7.100 ms of each 10.00 ms step and rank 0 only 5.100 ms: 1.000 ms "
            "more than the mean of 2 ranks; the largest difference is in lookup (3.000 ms and "
            "1.000 ms).");
  EXPECT_EQ(found.saving_ns, 1 * kMs);
}

TEST(UnbalancedShardsRule, IsSilentWhereAllRanksHaveTheSame) {
  InsightProgram program = AShardedProgram(3 * kMs, 3 * kMs);
  EXPECT_TRUE(IsSilent(program.run(), "unbalanced-shards"));
}

TEST(UnbalancedShardsRule, IsSilentWhereADeviceIsSlowInAllKernels) {
  InsightProgram program = AShardedProgram(2 * kMs, 3 * kMs, 6 * kMs);
  EXPECT_TRUE(IsSilent(program.run(), "unbalanced-shards"));
}

TEST(UnbalancedShardsRule, SaysThatItCannotTellOfOneRank) {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 0, .end = 4 * kMs});
  EXPECT_TRUE(IsUnchecked(program.run(), "unbalanced-shards"));
}

// Two ranks, 6 steps: each multiplies batches of `long_rows` or 100 rows in turn; rank 1 is `shift`
// steps behind.
InsightProgram AProgramOfLengths(int64_t long_rows, int64_t shift) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    InsightRank& of = program.rank(rank);
    for (int64_t k = 0; k < 6; ++k) {
      const int64_t at = k * 10 * kMs;
      of.AddStep(at, at + 10 * kMs);
      of.trace().ranges.payload[of.trace().ranges.size() - 1] = static_cast<uint64_t>(k);
      of.AddOperator("aten::mm", at, at + 1 * kMs);
      of.AddKernel({.launched = at, .start = at, .end = at + 10 * kMs});
    }
    Trace& trace = of.trace();
    const uint32_t texts[] = {
        trace.dictionary.AppendString("[[" + std::to_string(long_rows) + ", 64], [64, 64]]"),
        trace.dictionary.AppendString("[[100, 64], [64, 64]]")};
    for (int64_t k = 0; k < 6; ++k) {
      trace.operators.shapes.push_back(texts[(k + (rank == 1 ? shift : 0)) % 2]);
    }
  }
  return program;
}

TEST(UnevenLengthsRule, FiresWhereAnotherRankHasTheLongestBatchEachTime) {
  InsightProgram program = AProgramOfLengths(300, 1);
  const Insight found = TheFinding(program.run(), "uneven-lengths");
  // Of 300 and 100 rows the mean is 200, a third less than the most.
  EXPECT_NE(found.finding.find("the rank with most work has 33.3 % more"), std::string::npos)
      << found.finding;
  EXPECT_TRUE(found.saving_ns);
}

TEST(UnevenLengthsRule, FiresWhereStepsDifferOnAllRanksAlike) {
  InsightProgram program = AProgramOfLengths(300, 0);
  const Insight found = TheFinding(program.run(), "uneven-lengths");
  EXPECT_NE(found.finding.find("The steps of rank 0 differ in their work"), std::string::npos)
      << found.finding;
  EXPECT_FALSE(found.saving_ns);
}

TEST(UnevenLengthsRule, IsSilentWhereAllBatchesAreAlike) {
  InsightProgram program = AProgramOfLengths(100, 1);
  EXPECT_TRUE(IsSilent(program.run(), "uneven-lengths"));
}

TEST(UnevenLengthsRule, SaysThatItCannotTellWithoutShapes) {
  InsightProgram program = AProgramOfLengths(300, 1);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t& shapes : program.rank(rank).trace().operators.shapes) shapes = 0;
  }
  EXPECT_TRUE(IsUnchecked(program.run(), "uneven-lengths"));
}

// Steps of 10 ms; a sample in each, of which the first `throttled` say `reasons` at 1,200 MHz.
InsightProgram ASampledProgram(int64_t throttled, double reasons) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at, .end = at + 10 * kMs});
  }
  Trace& trace = program->trace();
  const auto sample = [&trace](DeviceCounter counter, int64_t at, double value) {
    static_assert(kDeviceCounters.size() == 6);
    trace.counters.start.push_back(at);
    trace.counters.end.push_back(at);
    trace.counters.device.push_back(0);
    trace.counters.name.push_back(
        trace.dictionary.AppendString(kDeviceCounters[static_cast<size_t>(counter)]));
    trace.counters.value.push_back(value);
  };
  for (int64_t k = 0; k < 10; ++k) {
    const int64_t at = k * 10 * kMs + 1 * kMs;
    sample(DeviceCounter::kSmClock, at, k < throttled ? 1'200 : 1'600);
    sample(DeviceCounter::kPower, at, 400);
    sample(DeviceCounter::kTemperature, at, 85);
    sample(DeviceCounter::kThrottleReasons, at, k < throttled ? reasons : 0);
  }
  return program;
}

TEST(ThrottlingRule, FiresWhereACapKeepsTheClockDown) {
  InsightProgram program = ASampledProgram(4, 0x4);
  const Insight found = TheFinding(program.run(), "throttling");
  EXPECT_EQ(found.finding,
            "Device 0 is throttled in 4 of 10 samples (power cap): its clock loses 10.0 % against "
            "the 1600 MHz it reaches, at up to 400 W and 85 degrees Celsius.");
  EXPECT_EQ(found.saving_ns, 1 * kMs);
}

// NVML's bit 0x1: the device had nothing to do.
TEST(ThrottlingRule, IsSilentWhereADeviceIsIdle) {
  InsightProgram program = ASampledProgram(4, 0x1);
  EXPECT_TRUE(IsSilent(program.run(), "throttling"));
}

TEST(ThrottlingRule, SaysThatItCannotTellWithoutSamples) {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 0, .end = 4 * kMs});
  EXPECT_TRUE(IsUnchecked(program.run(), "throttling"));
}

InsightProgram AProgramThatHolds(uint64_t reserved, uint64_t allocated) {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 0, .end = 4 * kMs});
  Allocations& all = program->trace().allocations;
  all.start.push_back(0);
  all.end.push_back(0);
  all.writer.push_back(0);
  all.bytes.push_back(static_cast<int64_t>(allocated));
  all.device_type.push_back(1);
  all.device.push_back(1);
  all.allocated.push_back(allocated);
  all.reserved.push_back(reserved);
  return program;
}

TEST(MemoryFragmentationRule, FiresWhereMuchOfWhatIsHeldFitsNothing) {
  InsightProgram program = AProgramThatHolds(uint64_t{4} << 30, uint64_t{2} << 30);
  const Insight found = TheFinding(program.run(), "memory-fragmentation");
  EXPECT_EQ(found.finding,
            "The allocator holds 4.0 GiB of device 0, and at most 2.0 GiB are ever in use: 2.0 GiB "
            "(50.0 %) lie in pieces that fit nothing.");
  EXPECT_FALSE(found.saving_ns);
}

TEST(MemoryFragmentationRule, IsSilentWhereAllIsUsedAtThePeak) {
  InsightProgram program = AProgramThatHolds(uint64_t{4} << 30, uint64_t{4} << 30);
  EXPECT_TRUE(IsSilent(program.run(), "memory-fragmentation"));
}

}  // namespace
}  // namespace ranktap::collector
