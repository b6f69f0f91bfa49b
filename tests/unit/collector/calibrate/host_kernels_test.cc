// Each loop that calibrate runs, against what it must compute; scripts/check_arm64 runs this in an
// emulator.
#include "collector/calibrate/host_kernels.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace ranktap::collector {
namespace {

TEST(HostKernelsTest, TheTriadIsWhatItsFormulaSays) {
  constexpr size_t kCount = 256;
  alignas(64) float a[kCount], b[kCount], c[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    b[i] = static_cast<float>(i);
    c[i] = 4;
  }
  Triad(a, b, c, kCount, 2);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(a[i], b[i] + 2) << i;
}

TEST(HostKernelsTest, EachKernelThatThisProcessorHasComputesWhatItCounts) {
  for (const ArithmeticKernel& kernel : EveryArithmeticKernel()) {
    // x = 0.999 x + 0.001 ends at 1, of twelve chains at 12.
    if (kernel.type.starts_with("fp")) {
      EXPECT_NEAR(kernel.run(20'000), 12, 0.1) << kernel.type << kernel.instruction;
    } else {
      EXPECT_EQ(kernel.run(5), kernel.first + 5 * kernel.a_round)
          << kernel.type << kernel.instruction;
    }
    EXPECT_GT(kernel.operations_a_round, 0);
  }
  EXPECT_GE(ArithmeticKernels().size(), 2u);
}

TEST(HostKernelsTest, EachTypeIsMeasuredByOneKernel) {
  std::set<std::string_view> types;
  for (const ArithmeticKernel& kernel : ArithmeticKernels()) {
    EXPECT_TRUE(types.insert(kernel.type).second) << kernel.type;
  }
}

}  // namespace
}  // namespace ranktap::collector
