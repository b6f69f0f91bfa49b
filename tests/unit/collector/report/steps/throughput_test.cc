// What a rate of arithmetic is compared with, and what is said where nobody knows a peak.
#include "collector/report/steps/throughput.h"

#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// Three steps; `used`: the device that ran a kernel in each, kNone: none did.
std::string PeakOf(uint32_t used, bool is_listed) {
  InsightProgram program;
  if (is_listed) {
    v1::Device* const device = program->trace().hello.add_devices();
    device->set_id(0);
    device->set_name("NVIDIA H100 80GB HBM3");
  }
  for (int64_t at = 0; at < 30 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    if (used == kNone) continue;
    program->AddKernel({.launched = at, .start = at + kUs, .end = at + kMs, .device = used});
  }
  const auto measured = MeasureThroughput(program.run(), program->trace(), {});
  return measured ? measured->peak_known : "no steps";
}

TEST(Throughput, SaysThatThereIsNoGpuOnlyWhereNoneIsListedAndNothingRanOnOne) {
  EXPECT_EQ(PeakOf(kNone, false), "there is no GPU: --peak-flops gives it");
  EXPECT_EQ(PeakOf(kNone, true), "no GPU was used: --peak-flops gives it");
  EXPECT_EQ(PeakOf(0, false), "the file does not name the device: --peak-flops gives it");
}

TEST(Throughput, TakesTheOneListedDeviceForTheOneUsedWhateverItsNumber) {
  EXPECT_EQ(PeakOf(3, true), "data sheet of NVIDIA H100 80GB HBM3");
}

// 64 samples in each step of 10 ms, whose forwards nobody recorded.
TEST(Throughput, SamplesASecondAreKnownWhereBatchAndStepAre) {
  InsightProgram program;
  for (int64_t at = 0; at < 30 * kMs; at += 10 * kMs) program->AddStep(at, at + 10 * kMs);
  ReportOptions options;
  EXPECT_FALSE(MeasureThroughput(program.run(), program->trace(), options)->SamplesPerSecond());
  options.batch_size = 64;
  options.data_parallel = 1;
  EXPECT_NEAR(*MeasureThroughput(program.run(), program->trace(), options)->SamplesPerSecond(),
              6'400, 1e-6);
}

}  // namespace
}  // namespace ranktap::collector
