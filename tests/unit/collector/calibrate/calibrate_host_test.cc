#include "collector/calibrate/calibrate_host.h"

#include <gtest/gtest.h>

#include <vector>

#include "collector/calibrate/host_kernels.h"

namespace ranktap::collector {
namespace {

TEST(CalibrateHostTest, TheTriadIsWhatItsFormulaSays) {
  constexpr size_t kCount = 256;
  alignas(64) float a[kCount], b[kCount], c[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    b[i] = static_cast<float>(i);
    c[i] = 4;
  }
  Triad(a, b, c, kCount, 2);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(a[i], b[i] + 2) << i;
}

TEST(CalibrateHostTest, EachChainOfMultiplyAddsEndsNearItsFixedPoint) {
  for (const ArithmeticKernel& kernel : ArithmeticKernels()) {
    // x = 0.999 x + 0.001 ends at 1, of twelve chains at 12.
    if (kernel.type.starts_with("fp")) {
      EXPECT_NEAR(kernel.run(20'000), 12, 0.1) << kernel.type;
    }
    // Each sum began at 0 to 11 and takes four products of 1 and -1 a round.
    if (kernel.type == "int8") {
      EXPECT_EQ(kernel.run(5), 66 - 12 * 4 * 5);
    }
    EXPECT_GT(kernel.operations_a_round, 0);
  }
  EXPECT_GE(ArithmeticKernels().size(), 2u);
}

TEST(CalibrateHostTest, AFileIsReadAsItWasWritten) {
  HostRoofs roofs;
  roofs.host = "box";
  roofs.processor = "CPU \"x\"";
  roofs.cores = 4;
  roofs.cache_bytes = 1 << 20;
  roofs.arithmetic = {{"bf16", "AVX-512 BF16", {1e12, 2.5}, {3e12, 1}}};
  roofs.levels = {{"memory", 1 << 28, {1e10, 3}, {2e10, 4}}};
  const Result<HostRoofs> read = ParseRoofs(RoofsText(roofs));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(RoofsText(*read), RoofsText(roofs));
  EXPECT_EQ(read->Peaks().bandwidth(), 2e10);
  EXPECT_EQ(read->Peaks().flops(ComputeUnit::kHalfTensor), 3e12);
  EXPECT_EQ(read->Peaks().flops(ComputeUnit::kFp32), 0) << "not measured";
}

TEST(CalibrateHostTest, WhatIsNoFileOfCalibrateIsRefused) {
  for (const char* const text :
       {"", "[]", "{}", "{\"ranktap_roofs\": 2}", "{\"ranktap_roofs\": \"1\"}"}) {
    EXPECT_FALSE(ParseRoofs(text).ok()) << text;
  }
  EXPECT_TRUE(
      ParseRoofs(
          R"({"ranktap_roofs": 1, "flops_per_second": [3, {"all_cores": "x"}], "bytes_per_second": 4})")
          .ok());
  for (const char* const host : {"", "..", "a/b"}) EXPECT_EQ(RoofsPath(host), "");
}

}  // namespace
}  // namespace ranktap::collector
