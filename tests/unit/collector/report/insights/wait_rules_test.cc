// Rules about hosts that wait for devices, and about copies. Each pair of programs differs in one
// thing.
#include <gtest/gtest.h>

#include "collector/facts/causes/waterfall.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// Each 10 ms step: a kernel of 6 ms and one of 2 ms. In between the host is in aten::item, copies 4
// bytes and waits; it launches the second kernel at 8 ms.
// `kind`: what the copy before the wait does.
InsightProgram AReadInEachStep(uint8_t kind, bool waits = true) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at, .end = at + 6 * kMs});
    program->AddOperator("aten::item", at + 1 * kMs, at + 7 * kMs,
                         "train.py(31): step;train.py(80): main");
    program->AddCopy({.kind = kind,
                      .from = kind == kDeviceToHost ? kOnDevice : kPinned,
                      .to = kind == kDeviceToHost ? kPinned : kOnDevice,
                      .bytes = 4,
                      .called = at + 1 * kMs,
                      .returned = at + 1 * kMs + 5 * kUs,
                      .start = at + 6 * kMs,
                      .end = at + 6 * kMs + 2 * kUs});
    if (waits)
      program->AddCall("cudaStreamSynchronize", at + 1 * kMs + 8 * kUs, at + 6 * kMs + 4 * kUs);
    const int64_t next = at + 8 * kMs;
    program->AddKernel({.launched = next, .start = next, .end = at + 10 * kMs});
  }
  return program;
}

TEST(TensorReadsRule, NamesOperatorLineAndTheIdleTimeAfterwards) {
  InsightProgram program = AReadInEachStep(kDeviceToHost);
  const Insight found = TheFinding(program.run(), "tensor-reads");
  EXPECT_EQ(found.where, "aten::item at train.py(31): step");
  EXPECT_EQ(found.finding,
            "aten::item at train.py(31): step reads device memory once a step and waits for it, "
            "4.996 ms each in the mean; afterwards the device is idle for 1.998 ms of each 10.00 "
            "ms step (20.0 %).");
  EXPECT_EQ(found.lost_ns, 1'998'000);
  EXPECT_LE(found.saving_ns.value(), found.lost_ns);
  EXPECT_GT(found.saving_ns.value(), 1'900'000);
}

TEST(TensorReadsRule, IsSilentWhereNobodyWaitsForTheCopy) {
  InsightProgram program = AReadInEachStep(kDeviceToHost, false);
  EXPECT_TRUE(IsSilent(program.run(), "tensor-reads"));
}

TEST(TensorReadsRule, IsSilentWhereTheCopyGoesToTheDevice) {
  InsightProgram program = AReadInEachStep(kHostToDevice);
  EXPECT_TRUE(IsSilent(program.run(), "tensor-reads"));
}

// A kernel of 7 us is read, then the host compiles: the device is idle for 2.68 s of which the wait
// cost at most the 10 us that it took. 100 us of compiling are the silent twin's.
InsightProgram AShortReadAndThenTheHost(int64_t compiles) {
  InsightProgram program;
  int64_t at = 0;
  for (int step = 0; step < 4; ++step) {
    const int64_t begin = at;
    program->AddKernel({.launched = at, .start = at + 2 * kUs, .end = at + 9 * kUs});
    program->AddCopy({.kind = kDeviceToHost,
                      .from = kOnDevice,
                      .to = kPageable,
                      .bytes = 4,
                      .called = at + 2 * kUs,
                      .returned = at + 12 * kUs,
                      .start = at + 9 * kUs,
                      .end = at + 10 * kUs});
    program->AddCall("cudaStreamSynchronize", at + 13 * kUs, at + 14 * kUs);
    at += 10 * kUs + compiles;
    program->AddKernel({.launched = at, .start = at, .end = at + 90 * kUs});
    at += 90 * kUs;
    program->AddStep(begin, at);
  }
  return program;
}

TEST(TensorReadsRule, AWaitCostsAtMostWhatTheHostWaited) {
  InsightProgram program = AShortReadAndThenTheHost(2'680 * kMs);
  EXPECT_TRUE(IsSilent(program.run(), "tensor-reads"));
  EXPECT_TRUE(IsSilent(program.run(), "explicit-syncs"));
  const RankWaterfall& waterfall = ComputeWaterfalls(program.run())[0];
  EXPECT_EQ(waterfall.mean[static_cast<size_t>(Cause::kSync)], 10 * kUs);
  EXPECT_EQ(waterfall.mean[static_cast<size_t>(Cause::kHost)], 2'680 * kMs - 10 * kUs);
}

// The copy waits, and the synchronisation after it finds nothing left: one read.
TEST(TensorReadsRule, AReadIntoPageableMemoryIsOne) {
  InsightProgram program = AShortReadAndThenTheHost(100 * kUs);
  const Insight found = TheFinding(program.run(), "tensor-reads");
  EXPECT_EQ(found.finding,
            "The program reads device memory once a step and waits for it, 11.00 us each in the "
            "mean; afterwards the device is idle for 10.00 us of each 200.0 us step (5.0 %).");
}

InsightProgram AStepThatCalls(std::string_view api) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at, .end = at + 6 * kMs});
    program->AddCall(api, at + 1 * kMs, at + 6 * kMs + 4 * kUs);
    program->AddKernel({.launched = at + 8 * kMs, .start = at + 8 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(ExplicitSyncsRule, CountsTheHostsWaitAndTheIdleTimeAfterwards) {
  InsightProgram program = AStepThatCalls("cudaDeviceSynchronize");
  const Insight found = TheFinding(program.run(), "explicit-syncs");
  EXPECT_EQ(found.finding,
            "cudaDeviceSynchronize is called once a step and holds the host for 5.004 ms of each "
            "10.00 ms step; afterwards the device is idle for 2.000 ms (20.0 %).");
  EXPECT_EQ(found.saving_ns, 2 * kMs);
}

TEST(ExplicitSyncsRule, IsSilentAboutACallThatDoesNotWait) {
  InsightProgram program = AStepThatCalls("cudaFuncGetAttributes");
  EXPECT_TRUE(IsSilent(program.run(), "explicit-syncs"));
}

TEST(ExplicitSyncsRule, IsSilentAboutAPollThatReturns) {
  InsightProgram program = AStepThatCalls("cudaEventQuery");
  EXPECT_TRUE(IsSilent(program.run(), "explicit-syncs"));
}

// 8 MiB to the device in each step, in 2 ms in which nothing computes.
InsightProgram AStepThatUploads(uint8_t from, std::string_view api) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddCopy({.from = from,
                      .bytes = 8 << 20,
                      .called = at,
                      .returned = at + 2 * kMs + 1 * kUs,
                      .start = at,
                      .end = at + 2 * kMs,
                      .api = api});
    program->AddKernel({.launched = at + 3 * kMs, .start = at + 3 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(PageableCopiesRule, FiresOnAnAsynchronousCopyFromPageableMemory) {
  InsightProgram program = AStepThatUploads(kPageable, "cudaMemcpyAsync");
  const Insight found = TheFinding(program.run(), "pageable-copies");
  EXPECT_EQ(found.finding,
            "Pageable memory is copied to the device asynchronously once a step, 8.0 MiB in all a "
            "step, at 4.2 GB/s: the device computes nothing meanwhile or is idle after it for "
            "3.000 ms of each 10.00 ms step.");
  EXPECT_LE(found.saving_ns.value(), 3 * kMs);
  EXPECT_GE(found.saving_ns.value(), 2 * kMs);
}

TEST(PageableCopiesRule, IsSilentWhereTheMemoryIsPinned) {
  InsightProgram program = AStepThatUploads(kPinned, "cudaMemcpyAsync");
  EXPECT_TRUE(IsSilent(program.run(), "pageable-copies"));
}

TEST(BlockingCopiesRule, FiresOnCudaMemcpy) {
  InsightProgram program = AStepThatUploads(kPinned, "cudaMemcpy");
  const Insight found = TheFinding(program.run(), "blocking-copies");
  EXPECT_EQ(found.finding,
            "cudaMemcpy is called once a step, for 80.0 MiB in all, and holds the host for 2.001 "
            "ms of each 10.00 ms step (20.0 %); in 3.000 ms of it or right after it the device "
            "computes nothing.");
}

TEST(BlockingCopiesRule, IsSilentWhereTheSameCopyIsAsynchronous) {
  InsightProgram program = AStepThatUploads(kPinned, "cudaMemcpyAsync");
  EXPECT_TRUE(IsSilent(program.run(), "blocking-copies"));
}

InsightProgram AStepThatSets(std::string_view api) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddMemset({.bytes = 1 << 20,
                        .called = at,
                        .returned = at + 1 * kMs,
                        .start = at + 10 * kUs,
                        .end = at + 1 * kMs,
                        .api = api});
    program->AddKernel({.launched = at + 1 * kMs, .start = at + 1 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(BlockingMemsetsRule, FiresOnCudaMemset) {
  InsightProgram program = AStepThatSets("cudaMemset");
  const Insight found = TheFinding(program.run(), "blocking-memsets");
  EXPECT_EQ(found.count, 10);
  EXPECT_GE(found.lost_ns, 990'000);
  EXPECT_LE(found.saving_ns.value(), found.lost_ns);
}

TEST(BlockingMemsetsRule, IsSilentWhereTheSameMemsetIsAsynchronous) {
  InsightProgram program = AStepThatSets("cudaMemsetAsync");
  EXPECT_TRUE(IsSilent(program.run(), "blocking-memsets"));
}

}  // namespace
}  // namespace ranktap::collector
