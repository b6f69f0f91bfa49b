// What a process pays once, and advice that follows the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kKernels[] = {"convolve", "relu", "norm", "pool", "loss"};

// Without steps: 900 ms of `first` on an idle device, then five convolutions of 15 ms and more,
// whose kernels do not repeat.
template <typename First>
InsightProgram AProgramThatBeginsWith(First&& first) {
  InsightProgram program;
  first(program.rank());
  int64_t at = 900 * kMs;
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t end = at + 15 * kMs + i * i * kMs;
    program->AddOperator("aten::conv2d", at, at + 50 * kUs);
    program->AddKernel(
        {.name = kKernels[i], .launched = at + 10 * kUs, .start = at + 20 * kUs, .end = end});
    at = end;
  }
  return program;
}

TEST(FirstTimeCostsRule, LoadingOfCodeIsNamedWithItsRemedy) {
  InsightProgram program = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddCall("cuModuleLoadData", 0, 600 * kMs);
    rank.AddCall("cuDevicePrimaryCtxRetain", 600 * kMs, 800 * kMs);
  });
  const Insight found = TheFinding(program.run(), "first-time-costs");
  EXPECT_EQ(found.finding,
            "No device runs anything for 800.0 ms of 1.005 s (79.6 %) that a process pays once: "
            "loading code 600.0 ms, making a context 200.0 ms; most of it in cuModuleLoadData.");
  EXPECT_THAT(found.advice, HasSubstr("warm-up"));
  EXPECT_THAT(found.advice, HasSubstr("CUDA_MODULE_LOADING"));
  EXPECT_LE(found.saving_ns.value(), 800 * kMs);
}

TEST(FirstTimeCostsRule, CompilersAndFirstCallsAreTold) {
  InsightProgram program = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddRange("", "inductor_compile", 0, 400 * kMs);
    rank.AddOperator("aten::conv2d", 400 * kMs, 900 * kMs);
    rank.AddCall("cudaLaunchKernel", 450 * kMs, 650 * kMs);
  });
  const Insight found = TheFinding(program.run(), "first-time-costs");
  EXPECT_THAT(found.finding, HasSubstr("for 900.0 ms of"));
  EXPECT_THAT(found.finding, HasSubstr("compiling 400.0 ms, first calls of operators 300.0 ms, "
                                       "loading code 200.0 ms; most of it in inductor_compile"));
  EXPECT_THAT(found.advice, HasSubstr("TORCHINDUCTOR_CACHE_DIR"));
}

TEST(FirstTimeCostsRule, IsSilentWhereTheHostDoesSomethingElse) {
  InsightProgram program = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddRange("", "read the file", 0, 900 * kMs);
    rank.AddOperator("aten::randn", 0, 900 * kMs);
  });
  EXPECT_TRUE(IsSilent(program.run(), "first-time-costs"));
}

TEST(FirstTimeCostsRule, IsSilentWhereADeviceWorksMeanwhile) {
  InsightProgram program = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddCall("cuModuleLoadData", 0, 800 * kMs);
    rank.AddKernel({.launched = 0, .start = 1 * kMs, .end = 899 * kMs});
  });
  EXPECT_TRUE(IsSilent(program.run(), "first-time-costs"));
}

TEST(LowUtilizationRule, ABiggerBatchIsNoAdviceWhereCodeIsLoaded) {
  InsightProgram loads = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddKernel({.launched = 0, .start = 1 * kMs, .end = 2 * kMs});
    rank.AddCall("cuModuleLoadData", 2 * kMs, 890 * kMs);
  });
  EXPECT_THAT(TheFinding(loads.run(), "low-utilization").advice, StartsWith("Run a warm-up pass"));
  InsightProgram reads = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddKernel({.launched = 0, .start = 1 * kMs, .end = 2 * kMs});
    rank.AddRange(proto::kPhaseDomain, proto::kDataPhase, 2 * kMs, 890 * kMs);
  });
  EXPECT_THAT(TheFinding(reads.run(), "low-utilization").advice, StartsWith("Load data ahead"));
  InsightProgram launches = AProgramThatBeginsWith(
      [](InsightRank& rank) { rank.AddKernel({.launched = 0, .start = 1 * kMs, .end = 2 * kMs}); });
  EXPECT_THAT(TheFinding(launches.run(), "low-utilization").advice,
              StartsWith("Give the device more at once"));
}

// Both ranks compute behind their all-reduces, or wait for them, and are idle in a range that is
// named so for most of the time.
InsightProgram AnIdleRangeOf(std::string_view domain, bool is_exposed) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    uint64_t sequence = 0;
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 2 * kMs});
      program.rank(rank).AddKernel({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                    .launched = at + 10 * kUs,
                                    .start = at + (is_exposed ? 2 * kMs : 1 * kMs),
                                    .end = at + (is_exposed ? 3 * kMs : 2 * kMs),
                                    .stream = 13});
      program.rank(rank).DescribeCollective(++sequence, 4 << 20, 2);
      program.rank(rank).AddRange(domain, "all_reduce", at + 3 * kMs, at + 10 * kMs);
    }
  }
  return program;
}

TEST(LowUtilizationRule, ARangeNamedLikeACollectiveIsNoReasonWhereCollectivesAreHidden) {
  InsightProgram hidden = AnIdleRangeOf("", false);
  EXPECT_THAT(TheFinding(hidden.run(), "low-utilization").advice,
              StartsWith("Give the device more at once"));
  InsightProgram exposed = AnIdleRangeOf("", true);
  EXPECT_THAT(TheFinding(exposed.run(), "low-utilization").advice,
              StartsWith("Overlap what the range all_reduce communicates"));
  InsightProgram gloo = AnIdleRangeOf(proto::kCommDomain, false);
  EXPECT_THAT(TheFinding(gloo.run(), "low-utilization").advice,
              StartsWith("Overlap what the range all_reduce communicates"));
}

// The report says beside it that no communication is exposed.
TEST(LowUtilizationRule, ARangeNamedLikeACollectiveIsNoReasonWhereNoCollectiveIsKnown) {
  InsightProgram sends = AProgramThatBeginsWith([](InsightRank& rank) {
    rank.AddKernel({.launched = 0, .start = 1 * kMs, .end = 2 * kMs});
    rank.AddRange("", "horovod.allreduce", 2 * kMs, 890 * kMs);
  });
  EXPECT_THAT(TheFinding(sends.run(), "low-utilization").advice,
              StartsWith("Give the device more at once"));
}

// A trace of 100 ms without steps.
InsightProgram AGapOf(int64_t length) {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 0, .end = 20 * kMs});
  program->AddKernel(
      {.launched = (20 * kMs) + length, .start = 20 * kMs + length, .end = 100 * kMs});
  return program;
}

TEST(GpuGapsRule, OneGapThatFillsMostOfATraceWithoutStepsIsTold) {
  InsightProgram program = AGapOf(60 * kMs);
  EXPECT_THAT(
      TheFinding(program.run(), "gpu-gaps").finding,
      StartsWith("No device runs anything for 50.00 ms or longer once, which takes 60.00 ms "
                 "of 100.0 ms (60.0 %)"));
  InsightProgram shorter = AGapOf(40 * kMs);
  EXPECT_TRUE(IsSilent(shorter.run(), "gpu-gaps"));
}

std::string AdviceOn(std::string_view kernel, std::string_view type) {
  InsightProgram program(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    uint64_t sequence = 0;
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at, .end = at + 8 * kMs});
      program.rank(rank).AddKernel({.name = kernel,
                                    .launched = at + 10 * kUs,
                                    .start = at + 8 * kMs,
                                    .end = at + 10 * kMs,
                                    .stream = 13});
      program.rank(rank).DescribeCollective(++sequence, 4 << 20, 2);
      program.rank(rank).trace().collectives.back().name = std::string(type);
    }
  }
  return TheFinding(program.run(), "exposed-comm").advice;
}

TEST(ExposedCommRule, ItsAdviceFitsTheCollective) {
  EXPECT_THAT(AdviceOn("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "allreduce"),
              HasSubstr("DistributedDataParallel's buckets"));
  EXPECT_THAT(AdviceOn("ncclDevKernel_AllGather_RING_LL", "_allgather_base"),
              HasSubstr("backward_prefetch"));
  EXPECT_THAT(AdviceOn("ncclDevKernel_SendRecv", "all_to_allv"), HasSubstr("tokens of experts"));
  EXPECT_THAT(AdviceOn("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
              HasSubstr("once before the loop"));
}

}  // namespace
}  // namespace ranktap::collector
